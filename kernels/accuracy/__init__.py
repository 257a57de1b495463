"""How far each way of adding is from the truth: every method on every array, held to the exact value.

What is here names things; `kernels.accuracy.study` computes, and loads a compiler for it.
"""

from warpfold.kernels.accuracy.axes import MAX_POINTS, AccuracyAxes
from warpfold.kernels.accuracy.methods import AccuracyMethod, method_named, methods, methods_on
from warpfold.kernels.accuracy.point import AccuracyCase, AccuracyFigures, BoundVerdict, StudiedCase

__all__ = [
    "MAX_POINTS",
    "AccuracyAxes",
    "AccuracyCase",
    "AccuracyFigures",
    "AccuracyMethod",
    "BoundVerdict",
    "StudiedCase",
    "method_named",
    "methods",
    "methods_on",
]
