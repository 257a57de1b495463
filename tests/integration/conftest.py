from pathlib import Path

import pytest

from tests.support.workers.gated import Gates


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "fleet.log"


@pytest.fixture
def gates(tmp_path: Path) -> Gates:
    return Gates(tmp_path / "gates")
