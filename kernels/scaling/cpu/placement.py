"""A CPU as a place for ranks."""

import ctypes
from collections.abc import Mapping, Sequence
from functools import partial
from multiprocessing import get_context

import psutil

from warpfold.kernels.backend import Device
from warpfold.kernels.cores import usable_cores
from warpfold.kernels.scaling.axes import Algorithm, Mode
from warpfold.kernels.scaling.cpu.limbs import LIMBS
from warpfold.kernels.scaling.cpu.ranks import CpuRanks, Shared
from warpfold.kernels.scaling.process import MakeRanks
from warpfold.kernels.scaling.study import WORD


class CpuPlacement:
    """One rank a core that this process may use."""

    note = (
        "no GPU took part: ranks are processes (process_per_rank) or threads (one_process) of the CPU, one thread "
        "each, which add up through shared memory; times are by the wall clock"
    )

    def __init__(self, device: Device) -> None:
        self.devices = (device,)
        self.available = usable_cores()

    def processes(self, mode: Mode, algorithm: Algorithm, ranks: int, largest: int) -> Sequence[MakeRanks]:
        words = max(LIMBS, largest // WORD)
        if mode is Mode.ONE_PROCESS or ranks == 1:
            return [partial(CpuRanks, range(ranks), ranks, algorithm, words)]
        context = get_context("spawn")
        # A file without a name behind it: whatever becomes of the processes, nothing stays behind.
        shared = Shared(context.RawArray(ctypes.c_int64, ranks * words), context.Barrier(ranks))
        return [partial(CpuRanks, [rank], ranks, algorithm, words, shared) for rank in range(ranks)]

    def environment(self, algorithm: Algorithm) -> Mapping[str, str | None]:
        return {}

    def memory(self, ranks: int) -> int:
        return int(psutil.virtual_memory().available)

    def room(self, ranks: int) -> int:
        # A row a rank, and the numbers it should hold in the end.
        return self.memory(ranks) // (3 * ranks)
