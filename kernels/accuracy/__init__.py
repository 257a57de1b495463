"""Accuracy studies: every method on every array, and how far its result is from the exact value.

This package names the axes, the methods and the cases of a study. `kernels.accuracy.study` runs it, and loads a
compiler for that.
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
