"""The ops that a GPU finishes by itself: which total each adds up, and what becomes of it."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from types import MappingProxyType

from warpfold.kernels.cuda.exact.shapes import SumKind


class Finishing(IntEnum):
    """The ends by their numbers in include/exact_finish.cuh."""

    SUM = 0
    MEAN = 1
    ROOT = 2
    VARIANCE = 3
    DEVIATION = 4


@dataclass(frozen=True, slots=True)
class ResidentOp:
    """An op of floats: the kind of its total, and its end."""

    kind: SumKind
    finish: Finishing


RESIDENT_OPS: Mapping[str, ResidentOp] = MappingProxyType(
    {
        "sum": ResidentOp(SumKind.VALUES, Finishing.SUM),
        "mean": ResidentOp(SumKind.VALUES, Finishing.MEAN),
        "norm1": ResidentOp(SumKind.MAGNITUDES, Finishing.SUM),
        "sum_squares": ResidentOp(SumKind.SQUARES, Finishing.SUM),
        "norm2": ResidentOp(SumKind.SQUARES, Finishing.ROOT),
        "var": ResidentOp(SumKind.MOMENTS, Finishing.VARIANCE),
        "std": ResidentOp(SumKind.MOMENTS, Finishing.DEVIATION),
        "dot": ResidentOp(SumKind.PRODUCTS, Finishing.SUM),
    }
)
"""By their names in `kernels.ops`."""
