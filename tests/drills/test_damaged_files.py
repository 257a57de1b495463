"""Files that lie about themselves cost their jobs, and no worker; a file that ends a child ends it once."""

import json
import struct
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from tests.support.figures import Figures
from tests.support.workers.bounded import WatchedSlot, watched_slot
from warpfold.app.jobs.attempt import Failure, Success
from warpfold.contract.states import Reason
from warpfold.worker.lease_exchange import Died


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("damaged").resolve()


@pytest.fixture(scope="module")
def slot(root: Path) -> Iterator[WatchedSlot]:
    with watched_slot(root) as slot:
        yield slot


def with_an_endless_tree(path: Path) -> None:
    """An HDF5 file in which a node of the tree of chunks is its own child: the library follows it until its stack
    ends."""
    with h5py.File(path, "w", libver="earliest") as file:
        file.create_dataset("x", data=np.arange(10_000.0).reshape(100, 100), chunks=(3, 3))
    whole = bytearray(path.read_bytes())
    at = whole.find(b"TREE\x01\x01")  # chunks, and one level above the leaves
    key = 8 + 3 * 8
    for child in range(struct.unpack_from("<H", whole, at + 6)[0]):
        struct.pack_into("<Q", whole, at + 24 + key + child * (key + 8), at)
    path.write_bytes(whole)


def test_a_file_that_ends_a_child_is_refused_by_name_the_next_time(
    slot: WatchedSlot, root: Path, figures: Figures
) -> None:
    with_an_endless_tree(root / "endless.h5")
    job: dict[str, Any] = {"source": {"type": "array", "path": "endless.h5"}, "op": "sum"}
    assert isinstance(slot.attempt(2, **job), Died), "the first attempt was lost with its lease: nobody looks first"
    slot.slot.ready()
    child = slot.slot.pid
    with figures.timed("a file that ended a child: the next attempt"):
        ending = slot.attempt(3, child_died=True, **job)
    assert isinstance(ending, Failure)
    assert (ending.reason, ending.replace) == (Reason.INVALID_INPUT, False)
    assert "endless.h5" in ending.error
    assert "ends every process that reads it (SIGSEGV)" in ending.error
    assert slot.slot.pid == child


def test_a_sound_file_is_reduced_by_any_attempt(slot: WatchedSlot, root: Path) -> None:
    with h5py.File(root / "sound.h5", "w") as file:
        file.create_dataset("x", data=np.arange(100.0), chunks=(9,), compression="gzip")
    for attempt in (1, 2, 3):
        ending = slot.attempt(attempt, child_died=attempt > 1, source={"type": "array", "path": "sound.h5"}, op="sum")
        assert isinstance(ending, Success)
        assert ending.result["value"] == 4950.0


@pytest.mark.parametrize("chunk", [1 << 10, 1 << 62])
def test_a_zarr_array_of_more_elements_than_can_be_counted_is_refused(
    slot: WatchedSlot, root: Path, chunk: int
) -> None:
    described = {"zarr_format": 2, "shape": [1 << 62, 1 << 62], "chunks": [1, chunk], "dtype": "<f8", "fill_value": 0.0}
    with zipfile.ZipFile(root / "endless.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(".zarray", json.dumps({**described, "order": "C", "compressor": None, "filters": None}))
    assert (root / "endless.zip").stat().st_size < 300
    ending = slot.run(source={"type": "array", "path": "endless.zip"}, op="sum")
    assert isinstance(ending, Failure)
    assert ending.reason is Reason.INVALID_INPUT
    assert "at most" in ending.error
