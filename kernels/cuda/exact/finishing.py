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
class FinishedOp:
    """An op of floats: the kind of its total, and its end."""

    kind: SumKind
    finish: Finishing


FINISHED_OPS: Mapping[str, FinishedOp] = MappingProxyType(
    {
        "sum": FinishedOp(SumKind.VALUES, Finishing.SUM),
        "mean": FinishedOp(SumKind.VALUES, Finishing.MEAN),
        "norm1": FinishedOp(SumKind.MAGNITUDES, Finishing.SUM),
        "sum_squares": FinishedOp(SumKind.SQUARES, Finishing.SUM),
        "norm2": FinishedOp(SumKind.SQUARES, Finishing.ROOT),
        "var": FinishedOp(SumKind.MOMENTS, Finishing.VARIANCE),
        "std": FinishedOp(SumKind.MOMENTS, Finishing.DEVIATION),
        "dot": FinishedOp(SumKind.PRODUCTS, Finishing.SUM),
    }
)
"""The numbers of the ops by their names in `kernels.ops`."""
