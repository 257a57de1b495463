"""The CPU as a place for ranks, and the ranks of one process: a thread each."""

import ctypes
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context
from typing import Any, TypeVar

import numpy as np
import psutil
from numpy.typing import NDArray

from warpfold.kernels.backend import Device
from warpfold.kernels.bench.host.timer import HostTimer
from warpfold.kernels.cpu.accumulator import accumulator
from warpfold.kernels.cpu.memory import cache_bytes
from warpfold.kernels.errors import OutOfMemory
from warpfold.kernels.exact.state import ExactState
from warpfold.kernels.machine.cores import usable_cores
from warpfold.kernels.ops import Terms
from warpfold.kernels.scaling.axes import Algorithm, Carrier, Method, Mode
from warpfold.kernels.scaling.cpu.allreduce import LIMBS, Barrier, allreduce, limbs_of, state_of
from warpfold.kernels.scaling.local_ranks import Sum, Timing
from warpfold.kernels.scaling.process import MakeRanks
from warpfold.kernels.scaling.study import WORD, shard
from warpfold.kernels.source import GeneratedSource

T = TypeVar("T")

PIECE = 1 << 22
"""Elements that are made at a time where no array is kept."""

_WARM_UP = 2


@dataclass(frozen=True, slots=True)
class Shared:
    """The things that the processes of a group share: memory with a row for each rank, and a barrier for all ranks."""

    memory: "ctypes.Array[ctypes.c_int64]"
    barrier: Barrier


class CpuRanks:
    """Ranks `mine` of `ranks`, which exchange up to `words` numbers; without anything in `shared` they are all of the
    group. Each displaces `cache_size` bytes of cached data before it is timed."""

    def __init__(
        self,
        mine: Sequence[int],
        ranks: int,
        algorithm: Algorithm,
        words: int,
        shared: Shared | None = None,
        *,
        cache_size: int,
    ) -> None:
        self._mine, self._ranks = tuple(mine), ranks
        self._barrier = (threading.Barrier(ranks) if shared is None else shared.barrier).wait
        memory = memoryview(bytearray(ranks * words * WORD)) if shared is None else memoryview(shared.memory)
        table = np.frombuffer(memory, dtype=np.int64)
        self._table = table.reshape(ranks, words)
        self._rows = self._table[:, :LIMBS]
        self._allreduce = allreduce(algorithm)
        self._pool = ThreadPoolExecutor(len(self._mine))
        self._clocks = [HostTimer(cache_size) for _ in self._mine]
        self._parts: list[NDArray[Any]] = []
        self._source: GeneratedSource | None = None
        self._method = Method.EXACT
        self._right = False

    @property
    def versions(self) -> tuple[tuple[str, str], ...]:
        return ()

    @property
    def token(self) -> object:
        return None

    def join(self, tokens: Sequence[object]) -> Carrier | None:
        self._everyone(lambda place: self._barrier())
        return Carrier.SHARED_MEMORY if self._ranks > 1 else None

    def load(self, source: GeneratedSource, method: Method) -> None:
        import psutil

        parts = [shard(source.count, self._ranks, rank) for rank in self._mine]
        needed = source.count * source.dtype.itemsize
        self._parts = []  # first give back, then ask
        free = int(psutil.virtual_memory().available)
        if needed > free:
            raise OutOfMemory(f"the ranks' data take {needed / 1e9:.1f} GB, and {free / 1e9:.1f} GB of memory are free")
        self._source, self._method = source, method
        # A rank sends its exact state, or one float64 in the place of an integer.
        width, kind = (LIMBS, np.int64) if method is Method.EXACT else (1, np.float64)
        self._rows = self._table[:, :width].view(kind)
        self._parts = self._everyone(lambda place: source.read(*parts[place]))
        self.sample(_WARM_UP)

    def sample(self, runs: int) -> list[list[Timing]]:
        def sample_of(place: int) -> list[Timing]:
            timings = []
            for _ in range(runs):
                self._clocks[place].flush()
                self._barrier()
                timings.append(self._run(place))
            return timings

        return self._everyone(sample_of)

    def call(self, runs: int) -> list[float]:
        def calls_of(place: int) -> list[float]:
            seconds = []
            for _ in range(runs):
                self._barrier()
                started = time.perf_counter()
                self._run(place)
                if self._mine[place] == 0:
                    self._value()
                seconds.append(time.perf_counter() - started)
            return seconds

        return self._everyone(calls_of)[0]

    def collect(self) -> list[Sum]:
        return [self._sum(rank) for rank in self._mine]

    def piecewise(self, source: GeneratedSource) -> ExactState:
        added = accumulator([source.dtype], Terms.VALUES)
        for start in range(0, source.count, PIECE):
            added.add(source.read(start, min(start + PIECE, source.count)))
        return added.state()

    def prepare_message(self, nbytes: int) -> None:
        self._parts = []
        self._rows = self._table[:, : nbytes // WORD]
        for rank in self._mine:
            self._rows[rank] = np.arange(self._rows.shape[1]) + rank
        self._everyone(lambda place: self._allreduce(self._rows, self._mine[place], self._barrier))
        expected = self._ranks * np.arange(self._rows.shape[1]) + self._ranks * (self._ranks - 1) // 2
        self._right = all(np.array_equal(self._rows[rank], expected) for rank in self._mine)

    def exchange(self, runs: int) -> list[float]:
        def seconds_of(place: int) -> float:
            self._barrier()
            started = time.perf_counter()
            for _ in range(runs):  # each run adds the numbers that the run before left: int64 wraps and stays as quick
                self._allreduce(self._rows, self._mine[place], self._barrier)
            return (time.perf_counter() - started) / runs

        return self._everyone(seconds_of)

    def check(self) -> bool:
        return self._right

    def _run(self, place: int) -> Timing:
        rank, began = self._mine[place], time.perf_counter()
        self._rows[rank] = self._reduce(self._parts[place])
        reduced = time.perf_counter()
        if self._ranks > 1:
            self._allreduce(self._rows, rank, self._barrier)
        ended = time.perf_counter()
        return Timing(reduced - began, ended - reduced, ended - began)

    def _reduce(self, part: NDArray[Any]) -> NDArray[np.int64] | float:
        assert self._source is not None, "load() comes first"
        if self._method is Method.EXACT:
            added = accumulator([self._source.dtype], Terms.VALUES)
            added.add(part)
            return limbs_of(added.state())
        return float(np.sum(part, dtype=np.float32 if part.itemsize < 4 else None))

    def _sum(self, rank: int) -> Sum:
        row = self._rows[rank]
        return state_of(row) if self._method is Method.EXACT else float(row[0])

    def _value(self) -> float:
        assert self._source is not None, "load() comes first"
        held = self._sum(0)
        return held.round_to(self._source.dtype) if isinstance(held, ExactState) else held

    def _everyone(self, work: Callable[[int], T]) -> list[T]:
        """The results of `work` for the place of each rank here, all at the same time."""
        return list(self._pool.map(work, range(len(self._mine))))


class CpuPlacement:
    """One rank a core that this process may use."""

    note = (
        "no GPU took part: ranks are processes (process_per_rank) or threads (one_process) of the CPU, one thread "
        "each, which add up through shared memory; times are by the wall clock"
    )

    def __init__(self, device: Device) -> None:
        self.devices = (device,)
        self.available = usable_cores()
        self._cache_bytes = device.cache_bytes or cache_bytes()

    def processes(self, mode: Mode, algorithm: Algorithm, ranks: int, largest: int) -> Sequence[MakeRanks]:
        words = max(LIMBS, largest // WORD)
        if mode is Mode.ONE_PROCESS or ranks == 1:
            return [partial(CpuRanks, range(ranks), ranks, algorithm, words, cache_size=self._cache_bytes)]
        context = get_context("spawn")
        # The file behind it has no name, so that nothing stays behind however the processes end.
        shared = Shared(context.RawArray(ctypes.c_int64, ranks * words), context.Barrier(ranks))
        return [
            partial(CpuRanks, [rank], ranks, algorithm, words, shared, cache_size=self._cache_bytes)
            for rank in range(ranks)
        ]

    def environment(self, algorithm: Algorithm) -> Mapping[str, str | None]:
        return {}

    def memory(self, ranks: int) -> int:
        return int(psutil.virtual_memory().available)

    def room(self, ranks: int) -> int:
        # A row a rank, and the numbers it should hold in the end.
        return self.memory(ranks) // (3 * ranks)
