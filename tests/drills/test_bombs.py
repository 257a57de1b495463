"""Small files that become large where a decoder believes them: each is refused in bounded memory, or read in it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.bombs import BECOMES, BOMBS
from tests.support.workers.bounded import MIB, WatchedSlot, watched_slot
from warpfold.app.jobs.attempt import Failure, Success
from warpfold.contract.states import Reason

PROMISED = 512 * MIB
"""What docs/sources.md promises of the memory of a job."""


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("bombs").resolve()


@pytest.fixture(scope="module")
def slot(root: Path) -> Iterator[WatchedSlot]:
    with watched_slot(root) as slot:
        yield slot


@pytest.mark.parametrize("name", BOMBS)
def test_a_small_file_takes_no_more_memory_than_a_job_may(slot: WatchedSlot, root: Path, name: str) -> None:
    bomb = BOMBS[name]
    bomb.write(root / name)
    assert (root / name).stat().st_size < BECOMES // 500
    child = slot.slot.pid
    ending, peak = slot.peak(source={**bomb.source, "path": name}, op="sum")
    if bomb.refused is None:
        assert isinstance(ending, Success)
        assert ending.result["value"] == 4000.0
    else:
        assert isinstance(ending, Failure)
        assert ending.reason is Reason.INVALID_INPUT
        assert bomb.refused in ending.error
    assert peak < PROMISED
    assert slot.slot.pid == child
