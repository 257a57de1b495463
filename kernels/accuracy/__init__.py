"""How far each way of adding is from the truth: every method on every array, held to the exact value.

What is here names things; `kernels.accuracy.study` computes, and loads a compiler for it.
"""

from warpfold.kernels.accuracy.axes import MAX_POINTS, Axes
from warpfold.kernels.accuracy.methods import Method, method_named, methods, methods_on
from warpfold.kernels.accuracy.point import BoundVerdict, Case, Measured, Point

__all__ = [
    "MAX_POINTS",
    "Axes",
    "BoundVerdict",
    "Case",
    "Measured",
    "Method",
    "Point",
    "method_named",
    "methods",
    "methods_on",
]
