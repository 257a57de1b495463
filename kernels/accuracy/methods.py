"""The methods that a study compares: loops that are written for it, and every strategy of the catalogue."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType

from warpfold.kernels.catalog import strategies
from warpfold.kernels.errors import InvalidInput

CUDA_PREFIX = "cuda_"
"""Stands before the name of a GPU's strategy where a loop has the same name: `cuda_tree` runs on the GPU, and `tree` is
a loop on the host."""

_LOOPS: Mapping[str, str] = MappingProxyType(
    {
        "sequential": "((t₁ + t₂) + t₃) + …, first to last",
        "reverse": "the same, last to first",
        "tree": "neighbours in pairs, level by level: (t₁ + t₂) + (t₃ + t₄) …",
        "pairwise": "blocks of 128 first to last, then a tree over the blocks",
        "sorted_ascending": "the smallest magnitudes first, equal ones in their given order; then first to last",
        "sorted_descending": "the largest magnitudes first, equal ones in their given order; then first to last",
        "kahan": "first to last, each rounding error taken from the next element (Kahan 1965)",
        "neumaier": "first to last, all rounding errors added up apart, and to the sum at the end (Neumaier 1974)",
        "float64_accumulator": "first to last in float64, rounded to the dtype at the end",
    }
)


@dataclass(frozen=True, slots=True)
class AccuracyMethod:
    """A way to reduce. `strategy` is its name in the catalogue, None for a loop of `kernels.accuracy.loops`;
    `backends` are where that strategy runs, and a loop runs on any host."""

    name: str
    summary: str
    strategy: str | None = None
    backends: tuple[str, ...] = ("cpu",)


@cache
def methods() -> Mapping[str, AccuracyMethod]:
    """All methods by name: the loops, the exact strategy, and the others of the catalogue, the CPU's before the
    GPU's."""
    rows = {name: AccuracyMethod(name, summary) for name, summary in _LOOPS.items()}
    for row in strategies():
        name = CUDA_PREFIX + row.name if row.name in _LOOPS else row.name
        before = rows.get(name)
        backends = (row.backend,) if before is None else (*before.backends, row.backend)
        rows[name] = AccuracyMethod(name, row.summary if before is None else before.summary, row.name, backends)
    return MappingProxyType(rows)


def method_named(name: str, field: str | None = None) -> AccuracyMethod:
    """The method called `name`; InvalidInput that names `field` for an unknown name."""
    method = methods().get(name)
    if method is None:
        raise InvalidInput(f"unknown method {name[:64]!r}; known: {', '.join(methods())}", field)
    return method


def methods_on(backend: str) -> tuple[str, ...]:
    """The names of the methods that a slot of `backend` can run: all of its host, and on a GPU its strategies too."""
    return tuple(name for name, method in methods().items() if {"cpu", backend} & set(method.backends))
