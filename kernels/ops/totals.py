"""What an op of exact totals adds up: the kinds of its states, and the ops that give its totals."""

from collections.abc import Mapping
from types import MappingProxyType

from warpfold.kernels.ops.kinds import Terms
from warpfold.kernels.ops.op import Op

_BY_FACTORS: Mapping[int, Terms] = MappingProxyType(
    {1: Terms.VALUES, 2: Terms.PRODUCTS, 3: Terms.TRIPLES, 4: Terms.QUADRUPLES}
)


def terms_of(op: Op) -> tuple[Terms, ...]:
    """What the exact states of a value of `op` add up, a state each."""
    if op.terms is Terms.MOMENTS:
        return Terms.VALUES, Terms.PRODUCTS
    if op.terms is Terms.TOTALS:
        return tuple(_BY_FACTORS[len(total.strip("|"))] for total in op.totals)
    return (op.terms,)


PLAIN_TOTALS: Mapping[str, str] = MappingProxyType({"x": "sum", "|x|": "norm1", "xx": "sum_squares"})
"""The totals of one source, called x, that are those of an op, and the op."""


def sums_of(op: Op) -> tuple[str, ...]:
    """The ops whose totals make a value of an op of several totals. All other products are added up as float64."""
    if op.terms is not Terms.TOTALS:
        return (op.name,)
    of_x = (total.replace("y", "x") if len(set(total.strip("|"))) == 1 else total for total in op.totals)
    return tuple(dict.fromkeys(PLAIN_TOTALS.get(total, "dot" if len(total) == 2 else "sum") for total in of_x))
