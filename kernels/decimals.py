"""Columns of decimals: integers with a scale. Their integers are reduced, and the value is scaled at the end.

The sum of 0.10 and 0.20 is 0.30, where floats give 0.30000000000000004: decimals are never rounded on the way.
"""

from dataclasses import replace
from fractions import Fraction

from warpfold.kernels.backend import Reduction
from warpfold.kernels.dtypes import DTYPES
from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.exact import ORIGIN, ExactState, round_ratio
from warpfold.kernels.ops import Finish, Op, Result, Terms
from warpfold.kernels.sequential import Elements, SequentialSource


def scale_of(source: Elements) -> int | None:
    """The scale of decimals, None of other elements: each element stands for itself · 10**−scale."""
    return source.scale if isinstance(source, SequentialSource) else None


def refuse_decimals(source: Elements, doing: str, field: str) -> None:
    """Raise InvalidInput that names `field` where `source` has decimals, which `doing` does not take."""
    if scale_of(source) is not None:
        raise InvalidInput(f"{doing} takes no decimals so far; cast the column to float64 or int64 first", field)


def check_decimals(op: Op, source: Elements) -> None:
    """Raise InvalidInput unless `op` takes the elements of `source`: of decimals those ops that are sums, means and
    extremes of elements, and those that only ask which elements are zero."""
    of_integers = op.result in (Result.INDEX, Result.TRUTH)
    linear = op.terms is Terms.VALUES and op.finish in (Finish.ITSELF, Finish.MEAN)
    if op.sources > 1 or not (of_integers or linear or op.extreme is not None):
        refuse_decimals(source, op.name, "op")


def with_scale(op: Op, reduction: Reduction, source: Elements) -> Reduction:
    """What was computed of the integers of `source` as the value of its decimals; of other sources as it is.

    The value is the float64 nearest to the true one, and `decimal` the true one in full, which a mean need not have.
    The state would be that of the integers, so there is none.
    """
    scale = scale_of(source)
    if scale is None or op.result in (Result.INDEX, Result.TRUTH):
        return reduction
    if op.finish is Finish.MEAN:
        if not reduction.count or reduction.state is None:
            raise InvalidInput("the mean of decimals needs elements, and the strategy exact", "strategy")
        state = ExactState.from_bytes(reduction.state)
        true = Fraction(state.units >> -ORIGIN[state.terms], state.count)
    else:
        true = Fraction(int(reduction.value))
    true /= Fraction(10) ** scale
    value = round_ratio(true.numerator, true.denominator, 0, DTYPES["float64"])
    written = None if op.finish is Finish.MEAN else in_full(int(reduction.value), scale)
    return replace(reduction, value=value, dtype="float64", correctly_rounded=True, state=None, decimal=written)


def in_full(units: int, scale: int) -> str:
    """`units` · 10**−`scale`, with `scale` digits behind the point."""
    if scale <= 0:
        return str(units * 10**-scale)
    digits = str(abs(units)).rjust(scale + 1, "0")
    return f"{'-' if units < 0 else ''}{digits[:-scale]}.{digits[-scale:]}"
