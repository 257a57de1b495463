"""All-reduces of a few numbers by stores into the memory of the other GPUs of a machine: `mailboxes.cu` says how.

The GPUs need access to each other's memory (peer access), over NVLink or PCIe. Nothing here uses NVLink's multicast.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from warpfold.kernels.cuda.compile import Unit
from warpfold.kernels.cuda.gpu.failures import cuda_errors
from warpfold.kernels.cuda.gpu.launch import Gpu
from warpfold.kernels.cuda.gpu.recorded import Prepared, RecordedLaunch
from warpfold.kernels.errors import CudaError

SOURCE = Path(__file__).parent / "mailboxes.cu"
_KERNELS = {"i": "all_reduce<uint64>", "f": "all_reduce<float64>"}  # by the kind of a NumPy dtype

WORDS = 96
"""The most numbers of one all-reduce."""
_RANKS = 32
_GROUPS = 8  # ranks that a block of threads serves at the same time
_BYTES = 1 << 21  # a mailbox is an allocation of its own: another process that opens it sees the whole allocation
_ALREADY_ENABLED = 704  # cudaErrorPeerAccessAlreadyEnabled

PATIENCE_S = 60.0
"""How long a rank waits for another one in an all-reduce. Before the first the other may have to compile kernels."""


def mailboxes_unit() -> Unit:
    """The kernels of an all-reduce of int64 and of float64."""
    return Unit(SOURCE, tuple(_KERNELS.values()))


class _Mailbox:
    """The mailbox of rank `rank`, in the memory of its GPU."""

    def __init__(self, gpu: Gpu, rank: int, patience_s: float) -> None:
        import cupy

        self.gpu, self._rank, self._limit_ns = gpu, rank, int(patience_s * 1e9)
        with gpu.active(), cuda_errors("a mailbox"):
            self._memory = cupy.cuda.Memory(_BYTES)
            cupy.cuda.runtime.memset(self._memory.ptr, 0, _BYTES)
            cupy.cuda.runtime.deviceSynchronize()
            self._pinned = cupy.cuda.alloc_pinned_memory(4)
        self._late = np.frombuffer(self._pinned, dtype=np.uint32, count=1)
        self._late[:] = 0

    @property
    def address(self) -> int:
        return int(self._memory.ptr)

    def handle(self) -> bytes:
        """The name by which another process opens the mailbox."""
        import cupy

        with self.gpu.active(), cuda_errors("a mailbox"):
            return bytes(cupy.cuda.runtime.ipcGetMemHandle(self.address))

    def all_reduce(self, mailboxes: Sequence[int], sent: Any, received: Any) -> Prepared:
        """The launch on this GPU. `mailboxes` are the addresses of all ranks' mailboxes on this GPU."""
        kernel = self.gpu.kernel(mailboxes_unit(), _KERNELS[sent.dtype.kind])
        table = np.zeros(_RANKS, dtype=np.uint64)
        table[: len(mailboxes)] = mailboxes
        ranks = len(mailboxes)
        args = (
            *(sent, received, np.uint32(sent.size), table, np.uint32(self._rank), np.uint32(ranks)),
            *(np.uint64(self._limit_ns), np.uint64(self._pinned.ptr)),
        )
        with self.gpu.active(), cuda_errors("an all-reduce"):
            return Prepared(self.gpu, [RecordedLaunch(kernel, 1, WORDS * min(ranks, _GROUPS), args, 0, False)])

    def check(self) -> None:
        """Raise CudaError if another rank did not come."""
        if self._late[0]:
            raise CudaError(
                f"rank {int(self._late[0]) - 1} did not come to an all-reduce within {self._limit_ns / 1e9:g} s"
            )


class Mailboxes:
    """The mailboxes of the ranks from `first` on, one for each of `gpus`. An all-reduce in which a rank waits for
    longer than `patience_s` ends, and `check` raises."""

    def __init__(self, gpus: Sequence[Gpu], first: int, ranks: int, patience_s: float = PATIENCE_S) -> None:
        self._first, self._ranks = first, ranks
        self._own = [_Mailbox(gpu, first + place, patience_s) for place, gpu in enumerate(gpus)]
        self._all: list[int] = []

    def handles(self) -> tuple[bytes, ...]:
        """The names of the mailboxes for other processes; none where no other process has ranks, or may open them."""
        try:
            return () if len(self._own) == self._ranks else tuple(mailbox.handle() for mailbox in self._own)
        except CudaError:
            return ()

    def open(self, handles: Sequence[Sequence[bytes]]) -> None:
        """Get access to the mailboxes of all ranks. `handles` are those of every process, in the order of ranks. Raises
        CudaError where a GPU has no access to another one's memory."""
        if len(self._own) == self._ranks:
            self._enable_access()
            self._all = [mailbox.address for mailbox in self._own]
            return
        (own,) = self._own
        everyone = [handle for process in handles for handle in process]
        if len(everyone) != self._ranks:
            raise CudaError("a process gave no access to its GPU's memory")
        self._all = [
            own.address if rank == self._first else _opened(own.gpu, handle) for rank, handle in enumerate(everyone)
        ]

    def prepared(self, sent: Sequence[Any], received: Sequence[Any]) -> "Launches":
        """What puts on each GPU's stream: `received[k]` becomes the sum of what all ranks sent, the same bits on all of
        them. CuPy arrays of up to WORDS int64 or float64, one of each for every GPU here."""
        return Launches(
            [
                partial(_start, mailbox.gpu, mailbox.all_reduce(self._all, source, target))
                for mailbox, source, target in zip(self._own, sent, received, strict=True)
            ]
        )

    def check(self) -> None:
        """Raise CudaError if a rank did not come to an all-reduce that is over."""
        for mailbox in self._own:
            mailbox.check()

    def _enable_access(self) -> None:
        from cupy.cuda import runtime

        indices = [mailbox.gpu.index for mailbox in self._own]
        for mailbox in self._own:
            with mailbox.gpu.active(), cuda_errors("access to another GPU's memory"):
                for index in indices:
                    if index == mailbox.gpu.index:
                        continue
                    if not runtime.deviceCanAccessPeer(mailbox.gpu.index, index):
                        raise CudaError(f"GPU {mailbox.gpu.index} has no access to the memory of GPU {index}")
                    try:
                        runtime.deviceEnablePeerAccess(index)
                    except runtime.CUDARuntimeError as error:
                        if error.status != _ALREADY_ENABLED:
                            raise


@dataclass(frozen=True, slots=True)
class Launches:
    """The launches of one all-reduce. The launch on `each` GPU may also be called by a thread of its own."""

    each: Sequence[Callable[[], None]]

    def __call__(self) -> None:
        for launch in self.each:
            launch()


def _start(gpu: Gpu, launch: Prepared) -> None:
    with gpu.active(), cuda_errors("all-reduce"):
        launch.start()


def _opened(gpu: Gpu, handle: bytes) -> int:
    from cupy.cuda import runtime

    with gpu.active(), cuda_errors("the mailbox of another process"):
        return int(runtime.ipcOpenMemHandle(handle))
