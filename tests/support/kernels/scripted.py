"""A device whose clock is a script: everything around the clocks is real, and every figure is known beforehand."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from itertools import repeat

from warpfold.kernels.backend import Device
from warpfold.kernels.bench.axes import Cache
from warpfold.kernels.bench.ceiling import Ceiling
from warpfold.kernels.bench.conditions import Conditions
from warpfold.kernels.bench.host.shaped import HostShape
from warpfold.kernels.bench.measurement import Replay
from warpfold.kernels.bench.workload import Runnable
from warpfold.kernels.cpu.backend import CpuBackend
from warpfold.kernels.errors import KernelError
from warpfold.kernels.ops import Value
from warpfold.kernels.source import Source
from warpfold.kernels.studies.shapes import CaseShape

CEILING = Ceiling(1e12, 2e12, 4e12, 1 << 20)
DEVICE = Device("cpu", "scripted", 0, 1 << 30, 1, None, None, ())


@dataclass
class ScriptedWorkload:
    """Gives the values of a script, one a run."""

    read_bytes: int
    values: Iterator[Value]
    waits: bool = True
    latest: Value = 0

    def run(self) -> None:
        self.latest = next(self.values)

    def value(self) -> Value:
        return self.latest


@dataclass
class ScriptedTimer:
    """Says that each run took as long as the script says."""

    seconds: Callable[[Cache], float] = lambda cache: 1e-3
    resolution_s: float = 0.0
    asked: list[tuple[Cache, int]] = field(default_factory=list)

    def method(self, workload: Runnable) -> str:
        return "script"

    def device(self, workload: Runnable, cache: Cache, runs: int) -> list[float]:
        self.asked.append((cache, runs))
        return [self.seconds(cache) for _ in range(runs)]

    def host(self, workload: Runnable, runs: int) -> list[float]:
        return [2e-3] * runs

    def issue(self, workload: Runnable, runs: int) -> float:
        return 1.5e-3

    def replay(self, workload: Runnable) -> Replay | None:
        return Replay(0.5e-3, 2)


class ScriptedObserver:
    max_clock_mhz = None

    def before(self) -> Conditions:
        return Conditions(clock_mhz=1000.0)

    def after(self) -> Conditions:
        return Conditions(clock_mhz=1000.0, temperature_c=40.0)


Script = Mapping[tuple[str, str], Value | KernelError | Exception | Iterator[Value]]
"""What (op, strategy) gives: a value, several in turn, or an error."""


@dataclass
class ScriptedArray:
    target: "ScriptedTarget"
    read_bytes: int

    def workload(self, op: str, strategy: str) -> ScriptedWorkload:
        scripted = self.target.script[(op, strategy)]
        if isinstance(scripted, Exception):
            raise scripted
        return ScriptedWorkload(self.read_bytes, scripted if isinstance(scripted, Iterator) else repeat(scripted))


@dataclass
class ScriptedTarget:
    script: Script
    timer: ScriptedTimer = field(default_factory=ScriptedTimer)
    observer: ScriptedObserver = field(default_factory=ScriptedObserver)
    ceiling: Ceiling = CEILING
    device: Device = DEVICE
    loads: list[tuple[str, int]] = field(default_factory=list)
    refuse: Mapping[int, KernelError] = field(default_factory=dict)

    def active(self) -> AbstractContextManager[None]:
        return nullcontext()

    def load_shape(self, source: Source, shape: CaseShape, seed: int) -> HostShape:
        """A shape is real, whatever the clock says."""
        return HostShape.of(CpuBackend(), source, shape, seed)

    def load(self, source: Source) -> ScriptedArray:
        self.loads.append((source.dtype.name, source.count))
        if source.count in self.refuse:
            raise self.refuse[source.count]
        return ScriptedArray(self, source.count * source.dtype.itemsize)
