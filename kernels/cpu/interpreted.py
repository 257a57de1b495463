"""Exact sums before anything is compiled: NumPy and Python's integers, as `kernels.exact` has them.

They add 30 million elements a second, and a compiled function takes seconds until it is there: so a small source has
its answer at once on a new machine (`CpuBackend`).
"""

from typing import Any

from numpy.typing import NDArray

from warpfold.kernels.exact import ExactState, Flags
from warpfold.kernels.ops import Terms

SMALL = 1 << 20
"""The most elements of a source that does not wait for a compiler."""

MANY = 1 << 14
"""The most values: each is rounded by Python, in some microseconds."""


class InterpretedSum:
    """An accumulator of values, magnitudes or squares, or of products of two arrays (`kernels.cpu.accumulator`)."""

    def __init__(self, terms: Terms, *, magnitudes: bool) -> None:
        self._magnitudes, self._state = magnitudes, ExactState.empty(terms)

    def add(self, *arrays: NDArray[Any]) -> Flags:
        if len(arrays) == 2:
            added = ExactState.of_products(*arrays)
        else:
            added = ExactState.of(arrays[0], self._state.terms, magnitudes=self._magnitudes)
        self._state = self._state.merge(added)
        return added.flags

    def state(self) -> ExactState:
        return self._state
