from pathlib import Path

import numpy as np
import pytest

from tests.support.service import Service
from tests.support.shell import Shell


@pytest.fixture
def shell(service: Service, tmp_path: Path) -> Shell:
    """A shell whose folder holds samples.npy, of three numbers, and large.npy, of too many for a request."""
    np.save(tmp_path / "samples.npy", np.array([1e16, 1.0, -1e16]))
    np.save(tmp_path / "large.npy", np.arange(20_000, dtype=np.float32))
    return Shell.at(service, tmp_path)
