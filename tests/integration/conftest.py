from pathlib import Path

import pytest

from benchmarks.hosts.gated_worker import Gates


@pytest.fixture
def gates(tmp_path: Path) -> Gates:
    """The gates of this test's jobs."""
    return Gates(tmp_path / "gates")
