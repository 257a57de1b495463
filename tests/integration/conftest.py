from pathlib import Path

import pytest

from tests.support.workers.gated import Gates


@pytest.fixture
def gates(tmp_path: Path) -> Gates:
    """The gates of this test's jobs."""
    return Gates(tmp_path / "gates")
