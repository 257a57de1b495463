"""What is compiled or loaded for a first run is a figure of its own, on the CPU and on a GPU. Time is a script here."""

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pytest
from numba.core import event
from numba.core.compiler_lock import global_compiler_lock
from numpy.typing import NDArray

from warpfold.kernels.aggregates import integer_loops
from warpfold.kernels.backend import Stages
from warpfold.kernels.cpu.backend import CpuBackend
from warpfold.kernels.cuda import backend as cuda_backend
from warpfold.kernels.cuda.backend import CudaBackend
from warpfold.kernels.cuda.strategies.strategy import Finished
from warpfold.kernels.dtypes import DTYPES
from warpfold.kernels.formats import text, text_blocks, text_file
from warpfold.kernels.formats.dialect import TextOptions
from warpfold.kernels.formats.plain_text import plain_columns
from warpfold.kernels.formats.tables import ColumnWanted
from warpfold.kernels.machine.preparation import Preparation
from warpfold.kernels.ops import OPS, NanPolicy, Terms
from warpfold.kernels.parts.grouping import AlongAxes
from warpfold.kernels.parts.keyed import Aggregation, Cells, GroupPlan, KeyedPart, KeyedRows, KeyedSource
from warpfold.kernels.source import ArraySource, GeneratedSource
from warpfold.kernels.sources.sequential import Section, SequentialSource

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
    monkeypatch.setattr(time, "perf_counter_ns", lambda: round(clock() * 1e9))
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


@dataclass
class CompilesLate:
    """Numbers in two sections. The first that is read compiles for an hour, where nothing could be prepared."""

    clock: Clock
    late: bool = True

    def compile(self) -> None:
        if self.late:
            with global_compiler_lock:
                self.late = False
                self.clock.now += HOUR

    def numbers(self) -> Iterator[NDArray[Any]]:
        self.compile()
        self.clock.now += 1.0
        yield np.ones(2)

    def source(self, *, sections: bool) -> SequentialSource:
        parts = [Section(self.numbers, 16, start, 2) for start in (0, 2)]
        made = (lambda: iter(parts)) if sections else None
        return SequentialSource(
            DTYPES["float64"], lambda: (array for part in parts for array in part.make()), 4, 4, sections=made
        )

    def rows(self) -> KeyedSource:
        import pyarrow

        def part(start: int) -> KeyedRows:
            return KeyedRows(start, (pyarrow.array([1, 2]),), (Cells(next(self.numbers())),))

        parts = [KeyedPart(start, start + 2, lambda start=start: part(start)) for start in (0, 2)]  # type: ignore[misc]
        return KeyedSource(("k",), (pyarrow.int64(),), ("x",), (DTYPES["float64"],), lambda: iter(parts), 4)


def _whole(backend: CpuBackend, late: CompilesLate) -> Any:
    return backend.reduce(late.source(sections=False), "sum")


def _sections(backend: CpuBackend, late: CompilesLate) -> Any:
    return backend.reduce(late.source(sections=True), "sum")


def _axes(backend: CpuBackend, late: CompilesLate) -> Any:
    return backend.reduce_groups(late.source(sections=False), (2, 2), AlongAxes((0,)), "sum")


def _numpy(backend: CpuBackend, late: CompilesLate) -> Any:
    return backend.reduce(late.source(sections=False), "sum", strategy="numpy")


def _by_key(backend: CpuBackend, late: CompilesLate) -> Any:
    return backend.group_by(late.rows(), GroupPlan((Aggregation(OPS["sum"], 0, "sum"),)))


@pytest.mark.parametrize("reduce", [_whole, _sections, _axes, _numpy, _by_key])
def test_what_compiles_wherever_it_is_called_first_is_no_time_of_loading_and_none_of_the_kernel(
    backend: CpuBackend, clock: Clock, reduce: Callable[[CpuBackend, CompilesLate], Any]
) -> None:
    late = CompilesLate(clock)
    began = clock.now
    first = reduce(backend, late)
    waited_ms = (clock.now - began) * 1e3
    assert not late.late
    assert first.prepare_ms > HOUR * 1e3
    assert 0 < first.load_ms + first.kernel_ms < HOUR * 1e3
    assert first.prepare_ms + first.load_ms + first.kernel_ms == pytest.approx(waited_ms, rel=1e-3)
    stages = first.stages
    assert max(each or 0.0 for each in (stages.read_s, stages.decode_s, stages.copy_s, stages.reduce_s)) < HOUR
    second = reduce(backend, late)
    assert second.prepare_ms == 0.0
    assert second.load_ms + second.kernel_ms < HOUR * 1e3


def test_compiling_what_reads_text_is_no_time_of_loading(
    backend: CpuBackend, clock: Clock, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    late = CompilesLate(clock)

    def plain(*asked: Any, **how: Any) -> Any:
        late.compile()
        return plain_columns(*asked, **how)

    monkeypatch.setattr(text_file, "plain_columns", plain)
    monkeypatch.setattr(text_blocks, "_has_compiled", lambda: True)
    path = tmp_path / "x.csv"
    path.write_text("x\n0.5\n0.25\n")
    with path.open("rb") as file:
        reduction = backend.reduce(text.open_text(file, None, ColumnWanted("x", text=TextOptions())), "sum")
    assert reduction.value == 0.75
    assert reduction.prepare_ms > HOUR * 1e3
    assert reduction.load_ms + reduction.kernel_ms < HOUR * 1e3
    assert reduction.stages is not None
    assert (reduction.stages.decode_s or 0.0) < HOUR


def test_the_clock_of_work_stands_still_while_something_is_prepared(clock: Clock) -> None:
    preparation = Preparation()
    before = preparation.working_s()
    with preparation:
        clock.now += HOUR
        within = preparation.working_s()
        clock.now += HOUR
    assert 0 < within - before < 1
    assert 0 <= preparation.working_s() - within < 1


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
    kernels = [  # those of several totals have the sums of others
        op for op in OPS.values() if op.sources == 1 and op.terms is not Terms.TOTALS
    ]
    assert all(backend.reduce(source, op.name).prepare_ms > 0 for op in kernels)
