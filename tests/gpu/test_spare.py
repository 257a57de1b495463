"""A spare child of a GPU's slot is ready but for the GPU, which it does not touch until it is needed."""

import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import psutil
import pytest

from tests.support.exchange import ending_of
from tests.support.leases import lease_on
from tests.support.waiting import until
from warpfold.app.jobs.attempt import Success
from warpfold.contract.folders import Folders
from warpfold.kernels.cuda.backend import CudaBackend
from warpfold.worker.child import open_kernels, prepare_kernels
from warpfold.worker.lease_exchange import Ending
from warpfold.worker.messages import Spare
from warpfold.worker.nursery import Nursery
from warpfold.worker.slot import Slot
from warpfold.worker.stop import Stop

SPEC = {"kind": "reduce", "op": "sum", "source": {"type": "values", "values": [1e8, 1, -1e8], "dtype": "float32"}}


@pytest.fixture
def stop() -> Iterator[Stop]:
    stop = Stop()
    yield stop
    stop.close()


@pytest.fixture
def slot(backend: CudaBackend, stop: Stop, nursery: Nursery) -> Iterator[Slot]:
    """The slot of the first GPU, which `backend` has found there, with a spare child that stands by."""
    opener = partial(open_kernels, "cuda:0", "here:cuda:0", Folders((), Path()))
    slot = Slot("cuda:0", opener, stop, nursery, spare=Spare(partial(prepare_kernels, "cuda:0"), opens=False))
    slot.ready()

    def stands_by() -> int | None:
        slot.keep_spare()
        return slot.spare_pid

    until(stands_by)
    yield slot
    slot.close()


def reduced(slot: Slot) -> Ending:
    return ending_of(slot, lease_on(json.dumps({**SPEC, "timeout_s": 60})))


def devices_of(pid: int) -> list[str]:
    """The device files of GPUs that a process has mapped or open."""
    process = psutil.Process(pid)
    paths = {file.path for file in process.memory_maps()} | {str(link.readlink()) for link in _links(pid)}
    return sorted(path for path in paths if path.startswith("/dev/nvidia"))


def _links(pid: int) -> Iterator[Path]:
    return Path(f"/proc/{pid}/fd").iterdir()


def test_a_spare_has_its_libraries_loaded_and_no_gpu_open(slot: Slot) -> None:
    assert slot.pid is not None
    assert slot.spare_pid is not None
    assert devices_of(slot.pid)
    assert not devices_of(slot.spare_pid)
    assert any("cupy" in file.path for file in psutil.Process(slot.spare_pid).memory_maps())


def test_a_spare_opens_the_gpu_when_it_takes_over_and_gives_the_same_bits(slot: Slot) -> None:
    spare, before, killed = slot.spare_pid, reduced(slot), psutil.Process(slot.pid)
    killed.kill()
    until(lambda: bool(slot.ready()) and slot.pid != killed.pid)  # a dying process holds its pipe for a moment
    assert slot.pid == spare
    after = reduced(slot)
    assert isinstance(before, Success)
    assert isinstance(after, Success)
    assert after.result["hex"] == before.result["hex"]


def test_no_thread_of_a_child_that_took_over_has_a_lower_priority(slot: Slot) -> None:
    """A spare child prepares itself with the priority that its jobs have, for it could not get that back."""
    assert slot.spare_pid is not None
    nices = {(task / "stat").read_text().rpartition(")")[2].split()[16] for task in _tasks(slot.spare_pid)}
    assert nices == {str(psutil.Process().nice())}


def _tasks(pid: int) -> Iterator[Path]:
    return Path(f"/proc/{pid}/task").iterdir()
