"""A real child on the CPU that may take so much memory and no more, and what it takes of that."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from tests.support import warm
from tests.support.exchange import ending_of
from tests.support.leases import lease_on
from warpfold.app.jobs.attempt import Lease, Success
from warpfold.contract.folders import ArtefactFolder, Folders
from warpfold.kernels.cpu import memory
from warpfold.worker.child import open_kernels
from warpfold.worker.execute import Kernels
from warpfold.worker.lease_exchange import Ending
from warpfold.worker.messages import Opener, Tell
from warpfold.worker.slot import Slot
from warpfold.worker.stop import Stop

MIB = 1 << 20


class WatchedSlot:
    """A slot whose child runs specs, and the memory that the child takes."""

    def __init__(self, slot: Slot) -> None:
        self.slot = slot

    def run(self, **spec: Any) -> Ending:
        """Run a job of the kind `reduce` unless the spec says another."""
        return self.attempt(1, **spec)

    def attempt(self, number: int, *, child_died: bool = False, **spec: Any) -> Ending:
        """Run an attempt of a job; a child that is gone is started anew. In the attempt before it the child died, or
        that ended otherwise."""
        self.slot.ready()
        lease = lease_on(json.dumps({"kind": "reduce", **spec}), attempt=number, child_died=child_died)
        return ending_of(self.slot, lease, 120.0)

    def resident(self) -> int:
        """The bytes of the child that are in memory."""
        return self._status("VmRSS")

    def peak(self, **spec: Any) -> tuple[Ending, int]:
        """Run a job; returns its ending, and how many more bytes than before the child had in memory at most."""
        before = self.resident()
        Path(f"/proc/{self.slot.pid}/clear_refs").write_text("5")  # the peak is counted anew
        ending = self.run(**spec)
        return ending, self._status("VmHWM") - before

    def _status(self, name: str) -> int:
        lines = Path(f"/proc/{self.slot.pid}/status").read_text().splitlines()
        return int(next(line.split()[1] for line in lines if line.startswith(f"{name}:"))) << 10


@contextmanager
def watched_slot(root: Path, memory_bytes: int | None = None, *, planned: bool = True) -> Iterator[WatchedSlot]:
    """A slot that reads files in `root` and stores results there. Unless `planned`, its child looks at nothing before
    it asks for memory."""
    folders = Folders((root,), root / "datasets", artefacts=ArtefactFolder(root / "artefacts", 1 << 34, 0))
    opener: Opener = partial(open_kernels, "cpu", "here:cpu", folders, 8 * MIB, memory_bytes=memory_bytes)
    stop = Stop()
    slot = Slot("cpu", opener if planned else partial(Unplanned, opener), stop, warm.nursery(), grace_s=0.3)
    slot.ready()
    try:
        yield WatchedSlot(slot)
    finally:
        slot.close()
        stop.close()


class Unplanned:
    """A child in which all memory that a plan asks about is there."""

    def __init__(self, opener: Opener) -> None:
        self._work = opener()
        assert isinstance(self._work, Kernels)

    @property
    def device(self) -> Mapping[str, object]:
        return self._work.device

    def run(self, lease: Lease, tell: Tell) -> Success:
        vars(memory)["available_bytes"] = lambda: 1 << 60  # in this process alone
        return self._work.run(lease, tell)
