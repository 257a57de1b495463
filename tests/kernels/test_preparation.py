"""What is compiled or loaded for a first run is a figure of its own, on the CPU and on a GPU. Time is a script here."""

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any

import numba
import numpy as np
import pytest
from numba.core import event

from warpfold.kernels.aggregates import integer_loops
from warpfold.kernels.backend import Stages
from warpfold.kernels.cpu.backend import CpuBackend
from warpfold.kernels.cuda import backend as cuda_backend
from warpfold.kernels.cuda.backend import CudaBackend
from warpfold.kernels.cuda.strategies.strategy import Finished
from warpfold.kernels.dtypes import DTYPES
from warpfold.kernels.ops import OPS, NanPolicy
from warpfold.kernels.preparation import Preparation
from warpfold.kernels.source import ArraySource, GeneratedSource

HOUR = 3600.0


@dataclass
class Clock:
    """Says what the script says; each look takes a millisecond."""

    now: float = 0.0

    def __call__(self) -> float:
        self.now += 1e-3
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(time, "perf_counter", clock)
    return clock


class Compiling(event.Listener):
    """Each compilation by Numba takes an hour of the clock."""

    def __init__(self, clock: Clock) -> None:
        self.clock, self.compilations = clock, 0

    def on_start(self, seen: Any) -> None:
        self.compilations += 1
        self.clock.now += HOUR

    def on_end(self, seen: Any) -> None:
        pass


@pytest.fixture
def compiling(clock: Clock) -> Iterator[Compiling]:
    listener = Compiling(clock)
    with event.install_listener("numba:compile", listener):
        yield listener


@pytest.fixture
def backend() -> CpuBackend:
    """One that has not run anything but sums of floats yet."""
    return CpuBackend()


def test_compiling_is_no_time_of_the_kernel(
    backend: CpuBackend, compiling: Compiling, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = ArraySource(np.arange(-3, 4, dtype=np.int16))
    backend.reduce(source, "sum")
    before = compiling.compilations
    monkeypatch.setattr(integer_loops, "add_rows", numba.njit(integer_loops.add_rows.py_func))  # not compiled yet
    first, second = (backend.reduce(source, "norm1") for _ in range(2))
    assert compiling.compilations == before + 1
    assert (first.value, second.value) == (12, 12)
    assert first.prepare_ms > HOUR * 1e3
    assert first.kernel_ms + first.load_ms < HOUR
    assert second.prepare_ms == 0.0


def test_compiling_a_generator_is_no_time_of_loading(
    backend: CpuBackend, compiling: Compiling, monkeypatch: pytest.MonkeyPatch
) -> None:
    from warpfold.kernels.generate import compiled

    monkeypatch.setattr(compiled, "fill_integers", numba.njit(compiled.fill_integers.py_func))
    source = GeneratedSource("uniform", 1000, 7, DTYPES["uint8"], {"low": 0, "high": 9})
    first, second = (backend.reduce(source, "max") for _ in range(2))
    assert compiling.compilations == 1
    assert first.prepare_ms > HOUR * 1e3
    assert first.load_ms < HOUR
    assert second.prepare_ms == 0.0


@pytest.mark.parametrize("policy", list(NanPolicy))
def test_what_is_prepared_does_not_depend_on_the_elements(backend: CpuBackend, policy: NanPolicy) -> None:
    """A first element that the policy leaves out, or too few elements for the degrees of freedom, are no hindrance."""
    source = ArraySource(np.array([np.nan, 1.0, 3.0], dtype=np.float16)[0 if policy is NanPolicy.OMIT else 1 :])
    assert backend.reduce(source, "var", nan_policy=policy, ddof=1).value == 2.0
    assert backend.reduce(source, "var", nan_policy=policy, ddof=1).prepare_ms == 0.0


def test_nothing_is_prepared_for_nothing(backend: CpuBackend) -> None:
    assert backend.reduce(ArraySource(np.array([], dtype=np.int16)), "sum").prepare_ms == 0.0


def test_parts_of_a_preparation_count_once(clock: Clock) -> None:
    preparation = Preparation()
    with preparation:
        clock.now += 1.0
        with preparation:
            clock.now += 1.0
    assert preparation.total_ms == pytest.approx(2001.0)


# A GPU whose calls take what the script says: the order in which the backend calls is its own -----------------------


@dataclass
class ScriptedStream:
    def synchronize(self) -> None:
        pass


@dataclass
class ScriptedGpu:
    clock: Clock
    preparation: Preparation = field(default_factory=Preparation)
    stream: ScriptedStream = field(default_factory=ScriptedStream)
    loaded: set[str] = field(default_factory=set)
    started: set[str] = field(default_factory=set)

    def active(self) -> AbstractContextManager[None]:
        return nullcontext()

    def kernel(self, name: str) -> Callable[[], None]:
        """A kernel that takes an hour to compile, two to be started first, and a second to run."""
        if name not in self.loaded:
            with self.preparation:
                self.clock.now += HOUR
            self.loaded.add(name)

        def start() -> None:
            self.clock.now += 1.0 if name in self.started else 2 * HOUR
            self.started.add(name)

        return start


@dataclass
class ScriptedReducer:
    kernel: Callable[[], None]

    def add(self, arrays: Any, first: int) -> None:
        self.kernel()

    def omitted(self) -> int | None:
        return None

    def finish(self, count: int) -> Finished:
        return Finished(float(count), True)


@dataclass
class ScriptedStrategy:
    name: str = "exact"
    needs_whole: bool = False

    def start(self, gpu: ScriptedGpu, op: Any, taken: Any, *, pieces: int, omit_nan: bool) -> ScriptedReducer:
        return ScriptedReducer(gpu.kernel(self.name))


@dataclass
class ScriptedStager:
    """Two pieces, each half an hour of loading; the first needs a kernel that makes it."""

    gpu: ScriptedGpu

    def pieces(self, *sources: Any, progress: Any) -> Iterator[tuple[tuple[Any, ...], int]]:
        for first in (0, 5):
            self.gpu.kernel("generator")
            self.gpu.clock.now += HOUR / 2
            yield (np.ones(5, dtype=np.float32),) * len(sources), first

    def stages(self, reduce_s: float) -> Stages:
        return Stages(reduce_s=reduce_s)


@dataclass
class ScriptedStopwatch:
    """Device time is the clock's here."""

    clock: Clock
    total_s: float = 0.0
    began: float = 0.0

    def __enter__(self) -> None:
        self.began = self.clock.now

    def __exit__(self, *error: object) -> None:
        self.total_s += self.clock.now - self.began

    def total_ms(self) -> float:
        return self.total_s * 1e3


def test_neither_compiling_nor_a_first_launch_is_time_of_a_gpus_kernel(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    gpu = ScriptedGpu(clock)
    backend = object.__new__(CudaBackend)
    vars(backend).update(_gpu=gpu, _stager=ScriptedStager(gpu))
    monkeypatch.setattr(cuda_backend, "Stopwatch", lambda stream: ScriptedStopwatch(clock))
    monkeypatch.setattr(cuda_backend, "cuda_errors", lambda doing: nullcontext())
    monkeypatch.setattr(cuda_backend, "cuda_strategies", lambda: {"exact": ScriptedStrategy()})
    source = GeneratedSource("normal", 10, 0, DTYPES["float32"])
    first, second = (backend.reduce(source, "sum") for _ in range(2))
    assert first.value == 10.0
    assert first.prepare_ms == pytest.approx(4 * HOUR * 1e3, rel=1e-5)  # two kernels compiled, one started
    assert first.kernel_ms == pytest.approx(2000.0)
    assert first.load_ms == pytest.approx(HOUR * 1e3, rel=1e-5)
    assert second.prepare_ms == 0.0
    assert second.kernel_ms == pytest.approx(2000.0)
    assert second.load_ms == pytest.approx(HOUR * 1e3, rel=1e-5)


def test_every_op_is_prepared_by_itself(backend: CpuBackend) -> None:
    source = ArraySource(np.array([1, 2], dtype=np.uint16))
    assert all(backend.reduce(source, op).prepare_ms > 0 for op in OPS if OPS[op].sources == 1)
