"""Devices, and what a reduction on one gives."""

from collections.abc import Callable
from dataclasses import dataclass, fields
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from warpfold.kernels.exact.column import StateColumn
from warpfold.kernels.lowering.iso8601 import TimeValue
from warpfold.kernels.ops import Value

LISTED = 10_000
"""Values of a reduction that come as Python has them."""

GANG = "gang"
"""The name of the slot that is all GPUs of a machine together."""

Progress = Callable[[int, int], None]
"""Called with (elements done, elements in all) while a long reduction runs; may raise to stop it."""


@dataclass(frozen=True, slots=True)
class Device:
    """A device as results and `/v1/devices` name it.

    `memory_bytes` is the device's own memory (the host's for the CPU); `compute_capability` is "9.0" for an H200
    and None for a CPU; `versions` names the driver, runtime and libraries in use. `cache_bytes` is the size of a CPU's
    last cache: benchmarks read more than fits it. A GPU is asked for its own when it is measured.
    """

    backend: str  # "cpu" or "cuda"
    name: str
    index: int
    memory_bytes: int
    cores: int  # streaming multiprocessors, or logical CPUs
    compute_capability: str | None
    uuid: str | None
    versions: tuple[tuple[str, str], ...]
    cache_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class Stages:
    """How long each stage of a reduction kept its threads busy, in seconds: the time of all threads that do the same,
    divided by their number, so that the longest stage is what bounds the whole. Stages overlap.

    `read_s` is reading of elements as they lie in a file, or making them; `decode_s` reading and decoding by a library,
    which does both; `copy_s` the way to the device, by way of pinned memory. What a GPU does is in its own time. None
    is a stage that there was not, or that cannot be told from another.
    """

    read_s: float | None = None
    decode_s: float | None = None
    copy_s: float | None = None
    reduce_s: float | None = None

    def __add__(self, other: "Stages") -> "Stages":
        """The time of both, stage by stage."""
        both = ((getattr(self, each.name), getattr(other, each.name)) for each in fields(Stages))
        return Stages(*(b if a is None else a if b is None else a + b for a, b in both))


@dataclass(frozen=True, slots=True)
class Reduction:
    """One reduced value, how it was computed, and how long that took.

    `value` is a float for float dtypes (every float dtype fits a Python float), else an int or bool. `count` is how
    many elements entered it. `correctly_rounded` is True only where the method proves it. `state` holds the canonical
    bytes of the exact accumulator (`kernels.exact`), and is None where the strategy had none. `load_ms` covers reading
    or generating and moving the data, `kernel_ms` the reduction itself (device time by events on a GPU). `prepare_ms`
    is in neither: it is the time to compile and load kernels that the backend had not run before, and 0 where it had
    run them all. `stages` is None where a backend tells no stages apart. `decimal` is the value of decimals in full,
    and `time` that of instants and durations in words; `fraction` is a mean or a quantile of
    decimals exactly. Of a complex value `value` is the real part, and `imaginary` the
    other one. `null` says that a null is among the elements and propagates: then there is no
    value, whatever stands there.
    """

    value: Value
    dtype: str
    count: int
    op: str
    strategy: str
    correctly_rounded: bool
    load_ms: float
    kernel_ms: float
    state: bytes | None = None
    prepare_ms: float = 0.0
    stages: Stages | None = None
    decimal: str | None = None
    time: TimeValue | None = None
    fraction: Fraction | None = None
    imaginary: float | None = None
    null: bool = False


@dataclass(frozen=True, slots=True)
class GroupedReduction:
    """The values of a reduction, in C order of `shape`. A value is None where the op has no value for its elements.

    More than LISTED values may come as arrays of float64, if no value is missing, and their counts as arrays of int64.
    Those of windows come as arrays of any dtype, masked where one is missing. `listed` has them as a tuple in any case.
    `counts` says how many elements entered each. `kernel` names the compiled loops that the shape chose. `states` has
    the exact states of all values where they were asked for: of the sums, or of the sums and the sums of squares that a
    variance has. `decimals` are the values of decimals in full, `fractions` means and quantiles of them, and `times`
    instants and durations in words.
    The other fields are those of `Reduction`.
    """

    values: tuple[Value | None, ...] | NDArray[Any]
    shape: tuple[int, ...]
    dtype: str
    counts: tuple[int, ...] | NDArray[np.int64]
    op: str
    strategy: str
    kernel: str
    correctly_rounded: bool
    load_ms: float
    kernel_ms: float
    prepare_ms: float = 0.0
    stages: Stages | None = None
    states: tuple[StateColumn, ...] = ()
    decimals: tuple[str | None, ...] | None = None
    times: tuple[TimeValue | None, ...] | None = None
    fractions: tuple[Fraction | None, ...] | None = None

    def listed(self) -> tuple[Value | None, ...]:
        """The values as Python has them."""
        return tuple(self.values.tolist()) if isinstance(self.values, np.ndarray) else self.values

    def counted(self) -> tuple[int, ...]:
        """The counts as Python has them."""
        return tuple(self.counts.tolist()) if isinstance(self.counts, np.ndarray) else self.counts
