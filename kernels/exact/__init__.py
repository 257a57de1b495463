"""Exact reductions: the accumulator, its bytes, and its one rounding. Python integers and NumPy, nothing compiled."""

from kernels.exact.finish import deviation, integer, mean, root, total, value_of, variance
from kernels.exact.rounding import round_ratio, round_sqrt
from kernels.exact.state import ORIGIN, ExactState, Flags, StateError

__all__ = [
    "ORIGIN",
    "ExactState",
    "Flags",
    "StateError",
    "deviation",
    "integer",
    "mean",
    "root",
    "round_ratio",
    "round_sqrt",
    "total",
    "value_of",
    "variance",
]
