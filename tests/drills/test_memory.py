"""Jobs that ask for more memory than their slot has: they are cut into blocks or refused before they begin, and what
nobody foresaw fails once, in a child that lives and gives the memory back."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from tests.support.workers.bounded import MIB, WatchedSlot, watched_slot
from warpfold.app.jobs.attempt import Failure, Success
from warpfold.contract.states import Reason

WIDE = 400_000
"""Values of two elements each. All their exact states at a time would take 1.4 GiB on two cores."""


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("wide").resolve()


@pytest.fixture(scope="module")
def slot(root: Path) -> Iterator[WatchedSlot]:
    with watched_slot(root, 1024 * MIB) as slot:
        yield slot


def test_many_values_of_a_generator_are_reduced_block_by_block(slot: WatchedSlot) -> None:
    source = {"type": "generate", "distribution": "arange", "n": 2 * WIDE, "dtype": "float64", "shape": [2, WIDE]}
    slot.run(source={**source, "n": 2000, "shape": [2, 1000]}, op="sum", axis=0)  # compiles
    ending, peak = slot.peak(source=source, op="sum", axis=0)
    assert isinstance(ending, Success)
    assert ending.result["shape"] == [WIDE]
    assert peak < 384 * MIB


def test_many_values_of_a_small_compressed_file_are_reduced_block_by_block(slot: WatchedSlot, root: Path) -> None:
    np.savez_compressed(root / "wide.npz", x=np.ones((2, WIDE)))
    assert (root / "wide.npz").stat().st_size < 25_000
    ending, peak = slot.peak(source={"type": "array", "path": "wide.npz"}, op="sum", axis=0)
    assert isinstance(ending, Success)
    assert peak < 384 * MIB


def test_a_plan_beyond_the_limit_is_refused_by_its_field_before_it_begins(slot: WatchedSlot) -> None:
    child = slot.slot.pid
    source = {"type": "generate", "distribution": "normal", "n": 1 << 28, "dtype": "float64"}
    ending, peak = slot.peak(source=source, op="sum", strategy="numpy")
    assert isinstance(ending, Failure)
    assert (ending.reason, ending.replace) == (Reason.OUT_OF_MEMORY, False)
    assert "strategy numpy on 268,435,456 elements needs 2,147,483,648 bytes of memory, and " in ending.error
    assert peak < 64 * MIB
    assert slot.slot.pid == child


def test_what_no_plan_foresaw_fails_once_and_the_child_gives_its_memory_back(root: Path) -> None:
    np.savez_compressed(root / "small.npz", x=np.zeros(1000))
    np.savez_compressed(root / "large.npz", x=np.zeros(80 * MIB))
    job = {"source": {"type": "array", "path": "small.npz"}, "op": "sum", "strategy": "numpy"}
    with watched_slot(root, 512 * MIB, planned=False) as slot:
        assert isinstance(slot.run(**job), Success)
        child, before = slot.slot.pid, slot.resident()
        ending, peak = slot.peak(**{**job, "source": {"type": "array", "path": "large.npz"}})
        assert isinstance(ending, Failure)
        assert (ending.reason, ending.replace) == (Reason.OUT_OF_MEMORY, False)
        assert 256 * MIB < peak < 512 * MIB
        assert isinstance(slot.run(**job), Success)
        assert slot.slot.pid == child
        assert slot.resident() < before + 64 * MIB
