"""From many exact sums to their values, each rounded once: what `kernels.exact.finish` defines, by compiled code. What
that code leaves, such as a quotient by more than 32 bits, goes by the definition."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from warpfold.kernels.cpu.certain import ColumnStates, certain_values
from warpfold.kernels.cpu.states import ManySums, MergedStates, Sums, by_parts
from warpfold.kernels.dtypes import DTYPES
from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.exact import ExactState, Flags, StateError, value_of
from warpfold.kernels.exact.encoding import DIGIT_BITS
from warpfold.kernels.ops import INTEGER, OPS, Finish, Op, Value
from warpfold.kernels.ops.empties import with_empties
from warpfold.kernels.parts.grouping import Index
from warpfold.kernels.parts.keyed import GroupColumn, whole_numbers
from warpfold.kernels.parts.state_tables import StatesOf

_COMPILED_FROM = 256
"""Values of totals from which on it is worth to wait for a compiler."""

_SPECIAL = int(Flags.NAN | Flags.POS_INF | Flags.NEG_INF)


@dataclass(frozen=True, slots=True)
class ValueFinish:
    """What becomes of the sums of an op that adds up: a value of the dtype named `result`, or "integer"."""

    op: Op
    result: str
    ddof: int = 0

    def values(self, sums: Sequence[Sums], counts: Index) -> NDArray[Any]:
        """The values of sums of so many terms each; those of a variance are beside sums of squares. Floats come as
        float64; integers as int64, uint64 or Python's, whatever holds all. A value is arbitrary where its count is 0,
        and for a variance where it is no more than `ddof`.

        Raises StateError where sums are not those of such elements."""
        return self.values_by_parts(lambda some: [each.at(some) for each in sums], counts)

    def values_by_parts(self, sums: Callable[[slice], Sequence[Sums]], counts: Index) -> NDArray[Any]:
        """The values of many sums, as `values`, where `sums` gives those at some neighbouring places."""
        parts = by_parts(lambda some: self._part(sums(some), counts[some]), counts.size)
        if len({part.dtype for part in parts}) > 1:  # integers that 64 bits may not hold
            return whole_numbers([number for part in parts for number in part.tolist()])
        return np.concatenate(parts)

    def _part(self, all_sums: Sequence[Sums], counts: Index) -> NDArray[Any]:
        sums = [each for each in all_sums if isinstance(each, ManySums)]
        if not sums:
            return self._defined(all_sums, counts)
        if self.result == INTEGER:
            return self._whole(sums[0], counts)
        from warpfold.kernels.cpu.windows import nearest, spreads

        finish, first, form = self.op.finish, sums[0], self.form
        values, left = np.zeros(counts.size), np.zeros(counts.size, np.bool_)
        if finish is Finish.ITSELF or finish is Finish.MEAN:
            divisors = counts if finish is Finish.MEAN else np.minimum(counts, 1)
            nearest.round_sums(first.limbs, first.exponent, first.flags, divisors, form, values, left)
        elif finish is Finish.ROOT:
            spreads.round_roots(first.limbs, first.exponent, first.flags, counts, form, values, left)
        elif finish is Finish.OF_TOTALS or (units := _units(first, sums[1])) is None:
            left = counts >= max(1, self.op.least_count(self.ddof))
        else:
            root, flags = finish is Finish.DEVIATION, first.flags | sums[1].flags
            spreads.round_spreads(
                first.limbs, sums[1].limbs, *units, flags, counts, self.ddof, root, form, values, left
            )
        for at in np.flatnonzero(left).tolist():
            values[at] = self._by_definition(sums, at, int(counts[at]))
        return values

    @property
    def form(self) -> tuple[int, int, int]:
        """The format of the values, as compiled roundings take it."""
        dtype = DTYPES[self.result]
        return dtype.precision, dtype.min_exponent, dtype.max_exponent

    def _whole(self, sums: ManySums, counts: Index) -> NDArray[Any]:
        from warpfold.kernels.cpu.windows import nearest

        words, large, left = np.zeros(counts.size, np.int64), *(np.zeros(counts.size, np.bool_) for _ in range(2))
        nearest.whole_sums(sums.limbs, sums.exponent, counts, words, large, left)
        left |= (counts > 0) & (sums.flags & _SPECIAL != 0)
        others = [(at, self._by_definition([sums], at, int(counts[at]))) for at in np.flatnonzero(left).tolist()]
        if not others and not large.any():
            return words
        if not others and (words[~large] >= 0).all():
            return words.view(np.uint64)
        numbers = words.astype(object)
        numbers[large] = words[large].view(np.uint64).astype(object)
        for at, number in others:
            numbers[at] = number
        return numbers

    def values_of_totals(self, totals: Sequence[Sequence[ExactState]], counts: Index) -> NDArray[Any]:
        """The values of an op of several totals, whose states these are, of `counts` elements each, as `values`. Raises
        StateError as `values`."""
        if self.result == INTEGER:
            numbers: list[Any] = [
                self.value([total[at] for total in totals]) if count else 0 for at, count in enumerate(counts.tolist())
            ]
            return whole_numbers(numbers)
        columns = [total for total in totals if isinstance(total, ColumnStates)]
        values, certain = np.zeros(counts.size), np.zeros(counts.size, np.bool_)
        if len(columns) == len(totals) and counts.size >= _COMPILED_FROM:
            values, certain = certain_values(self.op, self.ddof, columns, counts, self.form)
        for at in np.flatnonzero(~certain & (counts > 0)).tolist():
            values[at] = self.value([total[at] for total in totals])
        return values

    def _defined(self, sums: Sequence[Sums], counts: Index) -> NDArray[Any]:
        """All values by the definition."""
        least = max(1, self.op.least_count(self.ddof))
        values: list[Any] = [
            self._by_definition(sums, at, count) if count >= least else 0 for at, count in enumerate(counts.tolist())
        ]
        return whole_numbers(values) if self.result == INTEGER else np.array(values, np.float64)

    def _by_definition(self, sums: Sequence[Sums], at: int, count: int) -> Value:
        """Value `at`, of `count` terms."""
        return self.value([each.state(at, count) for each in sums])

    def value(self, states: Sequence[ExactState]) -> Value:
        """The value of elements with these states: by the definition, without a compiler."""
        return value_of(self.op, states, self.result, self.ddof)


def _units(values: ManySums, squares: ManySums) -> tuple[tuple[int, int], int] | None:
    """How many digits the sums of values and of squares lie above units of which the second is the square of the first,
    and the exponent of the second. None where limbs do not lie whole digits above such units."""
    apart, rest = divmod(squares.exponent - 2 * values.exponent, DIGIT_BITS)
    below = max(0, -(apart // 2))
    return None if rest else ((below, apart + 2 * below), 2 * (values.exponent - DIGIT_BITS * below))


def column_of_states(
    each: StatesOf, sums: Sequence[MergedStates], groups: int, min_count: int, *, keep: bool = True
) -> GroupColumn:
    """The values of all groups, and with `keep` their states. Raises InvalidInput where the states are not those of
    such elements."""
    op = OPS[each.op]
    counts = sums[0].counts(groups).copy()
    if any((other.counts(groups) != counts).any() for other in sums[1:]):
        raise InvalidInput(f"the sums and the sums of squares of {each.name!r} are not of the same elements", "tables")
    states = tuple(merged.encoded(groups) for merged in sums) if keep else ()
    missing = counts < max(min_count, op.least_count(each.ddof))
    try:
        parts = [merged.sums(groups) for merged in sums]
        values = ValueFinish(op, each.result, each.ddof).values(parts, np.where(missing, 0, counts))
    except StateError as error:
        raise InvalidInput(f"the states of {each.name!r} are not those of {each.op}: {error}", "tables") from None
    values = with_empties(op, DTYPES[each.dtypes[0]], values, counts)
    return GroupColumn(each.name, each.op, each.result, values, missing, counts, states)
