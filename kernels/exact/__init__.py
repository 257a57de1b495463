"""Exact reductions: the accumulator, its bytes, and its one rounding. The code uses Python integers and NumPy, and
nothing is compiled."""

from warpfold.kernels.exact.encoding import ORIGIN, Flags, StateError
from warpfold.kernels.exact.finish import deviation, integer, value_of, variance
from warpfold.kernels.exact.rounding import round_ratio, round_sqrt
from warpfold.kernels.exact.state import ExactState

__all__ = [
    "ORIGIN",
    "ExactState",
    "Flags",
    "StateError",
    "deviation",
    "integer",
    "round_ratio",
    "round_sqrt",
    "value_of",
    "variance",
]
