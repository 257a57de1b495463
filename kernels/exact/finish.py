"""Values from exact states: the only rounding of an exact reduction.

Specials and the sign of zero are those of `ExactState.round_to`.
"""

import math
from collections.abc import Sequence

from warpfold.kernels.dtypes import DTYPES, DType
from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.exact.encoding import FACTORS, ORIGIN, StateError
from warpfold.kernels.exact.rounding import round_ratio, round_root, round_sqrt
from warpfold.kernels.exact.state import ExactState
from warpfold.kernels.ops import INTEGER, Finish, Op, Terms, Value, terms_of


def value_of(op: Op, states: Sequence[ExactState], dtype: str, ddof: int = 0) -> Value:
    """The value of an op that adds, correctly rounded to the result dtype named `dtype`, or the Python integer itself
    for "integer". `states` are those of what the op adds up, all of the same elements.

    Raises StateError where the states hold other terms than the op adds, InvalidInput for a mean of nothing, or a
    variance of no more than `ddof` elements.
    """
    if [state.terms for state in states] != [*terms_of(op)]:
        adds, held = " and ".join(terms_of(op)), " and ".join(state.terms for state in states)
        raise StateError("terms", f"{op.name} adds {adds}, the state holds {held}")
    if dtype == INTEGER:
        return integer(states[0])
    row = DTYPES[dtype]
    match op.finish:
        case Finish.ITSELF:
            return states[0].round_to(row)
        case Finish.MEAN:
            return mean(states[0], row)
        case Finish.ROOT:
            return root(states[0], row)
        case Finish.VARIANCE | Finish.DEVIATION:
            spread = variance if op.finish is Finish.VARIANCE else deviation
            return spread(states[0], states[1], ddof, row)
        case Finish.OF_TOTALS:
            return of_totals(op, states, ddof, row)


def integer(state: ExactState) -> int:
    """The sum of integer terms; StateError if it is not a whole number."""
    scale = -ORIGIN[state.terms]
    if state.special() is not None or state.units & ((1 << scale) - 1):
        raise StateError("limbs", "the sum is not a whole number")
    return state.units >> scale


def mean(state: ExactState, dtype: DType) -> float:
    """The sum ÷ the count, rounded once."""
    if not state.count:
        raise InvalidInput("the mean of no elements is undefined")
    return state.round_to(dtype, state.count)


def root(state: ExactState, dtype: DType) -> float:
    """√ of the sum of squares, rounded once; StateError for a negative sum."""
    special = state.special()
    if special is not None:
        return math.sqrt(special) if special > 0 else math.nan
    if state.units < 0:
        raise StateError("limbs", "a sum of squares is not negative")
    return round_sqrt(state.units, 1, ORIGIN[state.terms], dtype)


def variance(values: ExactState, squares: ExactState, ddof: int, dtype: DType) -> float:
    """Σ(x − mean)² ÷ (n − ddof) rounded once, from the states of the same elements' values and squares.

    Exactly (n Σx² − (Σx)²) ÷ (n (n − ddof)). NaN where an element is not finite; InvalidInput unless n > ddof ≥ 0.
    """
    spread = _spread(values, squares, ddof)
    return math.nan if spread is None else round_ratio(*spread, dtype)


def deviation(values: ExactState, squares: ExactState, ddof: int, dtype: DType) -> float:
    """The square root of `variance`, rounded once."""
    spread = _spread(values, squares, ddof)
    return math.nan if spread is None else round_sqrt(*spread, dtype)


def _spread(values: ExactState, squares: ExactState, ddof: int) -> tuple[int, int, int] | None:
    """Numerator, denominator and binary exponent of the variance; None where it is NaN."""
    if values.terms is not Terms.VALUES or squares.terms is not Terms.PRODUCTS or values.count != squares.count:
        raise StateError("terms", "a variance needs the values and the squares of the same elements")
    count = values.count
    if not 0 <= ddof < count:
        raise InvalidInput(f"the variance of {count} elements with ddof {ddof} is undefined")
    if values.special() is not None or squares.special() is not None:
        return None
    # Both are in units of 2**−2148: the unit of a product is the square of the unit of a value.
    numerator = count * squares.units - values.units**2
    if numerator < 0:
        raise StateError("limbs", "these are not the values and the squares of the same elements")
    return numerator, count * (count - ddof), ORIGIN[Terms.PRODUCTS]


def of_totals(op: Op, states: Sequence[ExactState], ddof: int, dtype: DType) -> float:
    """The value of an op of several totals, rounded once, from the states of these totals of the same elements, of
    which there are enough. It is NaN where a total is not finite, unless that is the limit of the op."""
    assert op.exact is not None, "an op of several totals has a function of them"
    count, units = states[0].count, [state.units for state in states]
    if any(state.count != count for state in states):
        raise StateError("count", "the totals are not of the same elements")
    named = dict(zip(op.totals, units, strict=True))
    for total, square in (("x", "xx"), ("y", "yy")):
        if {total, square} <= named.keys() and count * named[square] < named[total] ** 2:
            raise StateError("limbs", "these are not the totals of the same elements")
    odd = {total: special for total, state in zip(op.totals, states, strict=True) if (special := state.special())}
    if odd:
        if op.limit is None or odd.keys() != {op.limit} or math.isnan(odd[op.limit]):
            return math.nan
        units[op.totals.index(op.limit)] = 1 if odd[op.limit] > 0 else -1
    factors = [FACTORS[state.terms] for state in states]
    # The unit of all becomes as large as they allow, because short integers are faster.
    places = min((_zeros(each) // many for each, many in zip(units, factors, strict=True) if each), default=0)
    value = op.exact(count, ddof, *(each >> (places * many) for each, many in zip(units, factors, strict=True)))
    if value is None:
        return math.nan
    if odd:
        return math.copysign(math.inf, value.numerator) if value.numerator else math.nan
    exponent = value.units * (ORIGIN[Terms.VALUES] + places)
    return round_root(value.numerator, value.denominator, exponent, value.degree, dtype)


def _zeros(units: int) -> int:
    """How many binary zeros an integer other than 0 ends with."""
    return (units & -units).bit_length() - 1
