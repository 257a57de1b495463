"""The suites of points in the tables of the docs. Each is a product of axes with a name."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from warpfold.kernels.bench.axes import Axes, Cache
from warpfold.kernels.dtypes import DTYPES

_GIB = 1 << 30


@dataclass(frozen=True, slots=True)
class Suite:
    """One table: `axes` for each part of it, `baseline` the strategy that the others are compared with. `on_host` are
    measured on the CPU of the same machine, on an array in its memory."""

    name: str
    title: str
    baseline: str
    axes: tuple[Axes, ...]
    on_host: tuple[Axes, ...] = ()


_OWN = ("single_pass", "exact", "two_pass", "tree", "atomic", "cooperative", "cluster", "compensated", "pairwise")
_PEERS = ("cub", "cub_not_guaranteed", "cub_gpu_to_gpu", "thrust", "torch", "cupy")
_BIG = (1 << 28, 1 << 29, _GIB, 1 << 31, 1 << 32, 5 * 10**9)
_SMALL = (10**3, 10**4, 10**5, 10**6, 10**7, 10**8)
_REPORT = (*_SMALL, 500_000_000)
_BOTH = (Cache.COLD, Cache.HOT)
_COLD = (Cache.COLD,)


def _sized(strategies: tuple[str, ...], ops: tuple[str, ...], nbytes: int) -> tuple[Axes, ...]:
    """The axes of every dtype but bool, each with as many elements as fill `nbytes`."""
    rows = [row for row in DTYPES.values() if row.name != "bool"]
    return tuple(Axes(strategies, ops, (row.name,), (nbytes // row.itemsize,), _COLD) for row in rows)


GPU_SUITES = (
    Suite(
        "sizes",
        "float32 sum, small and middle sizes",
        "cub",
        (Axes((*_OWN, *_PEERS), ("sum",), ("float32",), _SMALL, _BOTH),),
    ),
    Suite(
        "large",
        "float32 sum, large sizes",
        "cub",
        (Axes(("single_pass", "exact", "two_pass", *_PEERS), ("sum",), ("float32",), _BIG, _COLD),),
    ),
    Suite(
        "report",
        "the report's sizes: its own kernel, its peers NumPy and Thrust, and the strategies of today",
        "thrust",
        (Axes(("two_pass", "thrust", "cub", "single_pass", "exact"), ("sum",), ("float32",), _REPORT, _COLD),),
        (Axes(("numpy",), ("sum",), ("float32",), _REPORT, _COLD),),
    ),
    Suite(
        "dtypes",
        "sum, min and max of 2 GiB",
        "cub",
        _sized(("single_pass", "exact", "cub", "torch", "cupy"), ("sum", "min", "max"), 2 * _GIB),
    ),
    Suite(
        "arg",
        "argmin and argmax of 1 GiB",
        "cub",
        _sized(("single_pass", "cub", "torch", "cupy"), ("argmin", "argmax"), _GIB),
    ),
)
"""The suites on a GPU."""

CPU_SUITES = (
    Suite(
        "cpu",
        "float32 sum on the CPU",
        "numpy",
        (Axes(("exact", "numpy"), ("sum",), ("float32",), _REPORT, _BOTH),),
    ),
    Suite(
        "cpu-dtypes",
        "sum and argmax of 64 MiB on the CPU",
        "numpy",
        _sized(("exact", "numpy"), ("sum", "argmax"), 1 << 26),
    ),
)
"""The suites on a CPU."""

SUITES: Mapping[str, Suite] = MappingProxyType({suite.name: suite for suite in (*GPU_SUITES, *CPU_SUITES)})
