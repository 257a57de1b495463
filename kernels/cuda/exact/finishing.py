"""The ops that a GPU finishes by itself: which total each adds up, and what becomes of it."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from types import MappingProxyType

from warpfold.kernels.cuda.exact.shapes import SumKind
from warpfold.kernels.ops import OPS, Finish, Op, Terms


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


def _kind(op: Op) -> SumKind:
    """What the total of an op that adds something up is a sum of."""
    if op.terms is Terms.PRODUCTS:
        return SumKind.PRODUCTS if op.sources == 2 else SumKind.SQUARES
    if op.terms is Terms.MOMENTS:
        return SumKind.MOMENTS
    return SumKind.MAGNITUDES if op.magnitudes else SumKind.VALUES


_FINISHES: Mapping[Finish, Finishing] = MappingProxyType(
    {
        Finish.ITSELF: Finishing.SUM,
        Finish.MEAN: Finishing.MEAN,
        Finish.ROOT: Finishing.ROOT,
        Finish.VARIANCE: Finishing.VARIANCE,
        Finish.DEVIATION: Finishing.DEVIATION,
    }
)
FINISHED_OPS: Mapping[str, FinishedOp] = MappingProxyType(
    {op.name: FinishedOp(_kind(op), _FINISHES[op.finish]) for op in OPS.values() if op.finish in _FINISHES and op.adds}
)
"""The ops that add something up, by their names in `kernels.ops`."""
