"""A column that is being reduced: each fold that its ops need, once, and the values that the folds give."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from warpfold.kernels.aggregates.aggregate import Aggregate, Ids, Mergeable, State, UnderWay
from warpfold.kernels.aggregates.by_name import aggregate_of, exact_sum
from warpfold.kernels.aggregates.count import Counted
from warpfold.kernels.aggregates.integer_sum import IntegerSum
from warpfold.kernels.aggregates.patterns import is_nan
from warpfold.kernels.aggregates.portable_sum import PortableSum
from warpfold.kernels.cpu.finishing import ValueFinish
from warpfold.kernels.cpu.keyed.sums import KeyedFloatSums, LevelOrigin, Numbers
from warpfold.kernels.cpu.states import Sums, states_by_parts
from warpfold.kernels.dtypes import DType
from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.exact.column import StateColumn
from warpfold.kernels.ops import NanPolicy, Op, Terms
from warpfold.kernels.parts.grouping import Index
from warpfold.kernels.parts.keyed import Aggregation, Cells, GroupColumn, column_of, column_of_counts, needed_count


class AggregatedKeys:
    """All groups of a column by an aggregate. Group 0 is for the elements that are left out."""

    def __init__(self, aggregate: Aggregate | Mergeable) -> None:
        self._folded: UnderWay = aggregate.begun(1)

    def add(self, start: int, array: NDArray[Any], ids: Numbers, groups: int) -> None:
        """Take in the elements of `array`, shape (n,), whose first is that of row `start`."""
        self._folded.update((array,), Ids(ids, start), groups + 1)

    def merge(self, other: "AggregatedKeys", ids: Numbers, groups: int) -> None:
        """Take in all that `other` took in, whose group g is ids[g] here."""
        self._folded.merge(other._folded.rows(0, ids.size), ids, groups + 1)

    def rows(self, groups: int) -> State:
        """The state of groups 1 … `groups`."""
        return self._folded.rows(1, groups + 1)

    def counts(self, groups: int) -> Index:
        """How many elements each of groups 1 … `groups` has, of an aggregate that counts them."""
        (counts,) = self.rows(groups)
        return counts


class SummedKeys(AggregatedKeys):
    """Sums of the elements of a column, of their magnitudes or their squares, by such an aggregate."""

    def __init__(self, exact: IntegerSum | PortableSum) -> None:
        self._sum = exact
        super().__init__(exact)

    def counts(self, groups: int) -> Index:
        """How many elements each of groups 1 … `groups` has."""
        return self._sum.counts(self.rows(groups))

    def sums(self, some: slice) -> Sums:
        """The sums of the groups at some neighbouring places; group 1 is at place 0."""
        return self._sum.sums(self._folded.rows(some.start + 1, some.stop + 1))

    def states(self, groups: int) -> StateColumn:
        """The exact states of groups 1 … `groups`."""
        return states_by_parts(self.sums, self.counts(groups))


Summing = KeyedFloatSums | SummedKeys


def fold_names(op: Op) -> tuple[str, ...]:
    """The folds that `op` needs."""
    if op.terms is Terms.MOMENTS:
        return "values", "squares"
    if op.adds:
        return ("squares",) if op.terms is Terms.PRODUCTS else ("magnitudes" if op.magnitudes else "values",)
    if op.extreme is None and not op.takes and not op.picks:
        return (op.fold,)
    return (op.fold,) if op.selects else (f"{op.name} {op.parameters}",)


class ColumnFold:
    """The folds of a column, for one thread. `places` say where the sums of all threads lie, by fold. Sums that are not
    `compiled` need no compiler."""

    def __init__(
        self,
        name: str,
        dtype: DType,
        ops: Mapping[str, Op],
        places: Mapping[str, LevelOrigin],
        nan_policy: NanPolicy,
        *,
        compiled: bool = True,
    ) -> None:
        self._name = name
        self._dtype = dtype
        self._nan_policy = nan_policy if dtype.is_float else NanPolicy.PROPAGATE
        self._folds: dict[str, Any] = {
            name: _fold(name, op, dtype, places, compiled=compiled) for name, op in ops.items()
        }
        summing = [fold for fold in self._folds.values() if isinstance(fold, Summing)]
        if not summing:
            self._folds["count"] = AggregatedKeys(Counted())
        self._counting: Any = (summing or [self._folds["count"]])[0]
        self._absent = AggregatedKeys(Counted())
        self._nans = AggregatedKeys(Counted()) if self._nan_policy is NanPolicy.OMIT else None

    def add(self, start: int, cells: Cells, ids: Numbers, groups: int) -> None:
        """Take in the elements of rows from `start` on. Raises InvalidInput where an element is NaN and the policy is
        RAISE."""
        missing = cells.missing
        if self._nan_policy is not NanPolicy.PROPAGATE:
            nans = is_nan(cells.elements, self._dtype)
            if missing is not None:
                nans &= ~missing
            if self._nan_policy is NanPolicy.RAISE and (nans := nans & (ids > 0)).any():
                row = start + int(nans.argmax())
                raise InvalidInput(f"row {row} of {self._name!r} is NaN, and nan_policy is raise", "nan_policy")
            if self._nans is not None:
                self._nans.add(start, cells.elements, np.where(nans, ids, np.int32(0)), groups)
            if nans.any():
                missing = nans if missing is None else missing | nans
        if missing is not None and missing.any():
            gone = np.where(missing, ids, np.int32(0))
            self._absent.add(start, cells.elements, gone, groups)
            ids = np.where(missing, np.int32(0), ids)
        for fold in self._folds.values():
            fold.add(start, cells.elements, ids, groups)

    def merge(self, other: "ColumnFold", ids: Numbers, groups: int) -> None:
        """Take in all elements that `other` took in. Group g of `other` is group ids[g] of this column."""
        for name, fold in self._folds.items():
            fold.merge(other._folds[name], ids, groups)
        self._absent.merge(other._absent, ids, groups)
        if self._nans is not None and other._nans is not None:
            self._nans.merge(other._nans, ids, groups)

    def counts(self, groups: int) -> Index:
        """How many elements each of groups 1 … `groups` has."""
        counts: Index = self._counting.counts(groups)
        return counts

    def sizes(self, groups: int) -> Index:
        """How many rows each of groups 1 … `groups` has."""
        return self.counts(groups) + self._absent.counts(groups)

    def column(self, asked: Aggregation, groups: int, min_count: int, *, keep: bool = False) -> GroupColumn:
        """The values of groups 1 … `groups`, unless states alone are wanted; with `keep`, their exact states, too."""
        op, counts = asked.op, self.counts(groups).copy()
        if asked.state_only:
            made = column_of_counts(asked, self._dtype, counts)
        else:
            missing = counts < needed_count(asked, min_count)
            values = self._values(asked, op.result_dtype(self._dtype), groups, np.where(missing, 0, counts))
            made = column_of(asked, self._dtype, values, counts, min_count)
        nans = None if self._nans is None else self._nans.counts(groups)
        return replace(made, states=self._states(op, groups, keep=keep), nans=nans)

    def _states(self, op: Op, groups: int, *, keep: bool) -> tuple[StateColumn, ...]:
        if not keep or not op.adds:
            return ()
        return tuple(self._folds[name].states(groups) for name in fold_names(op))

    def _values(self, asked: Aggregation, result: str, groups: int, counts: Index) -> NDArray[Any]:
        """The values of groups 1 … `groups`; anything where `counts` has 0."""
        op, folds = asked.op, [self._folds[name] for name in fold_names(asked.op)]
        if op.adds:
            return self._summed(asked, result, folds, counts)
        return aggregate_of(op, self._dtype).finish(folds[0].rows(groups), counts)

    def _summed(self, asked: Aggregation, result: str, folds: list[Summing], counts: Index) -> NDArray[Any]:
        finish = ValueFinish(asked.op, result, asked.ddof)
        return finish.values_by_parts(lambda some: [fold.sums(some) for fold in folds], counts)


def _fold(name: str, op: Op, dtype: DType, places: Mapping[str, LevelOrigin], *, compiled: bool) -> Any:
    if op.adds:
        terms = Terms.PRODUCTS if name == "squares" else Terms.VALUES
        magnitudes = name == "magnitudes"
        if compiled and dtype.is_float:
            return KeyedFloatSums(dtype, terms, places[name], magnitudes=magnitudes)
        return SummedKeys(exact_sum((dtype,), terms, magnitudes=magnitudes, compiled=compiled))
    return AggregatedKeys(aggregate_of(op, dtype))


def ops_by_fold(ops: Iterator[Op]) -> dict[str, Op]:
    """Each fold that these ops need, with an op that needs it."""
    return {name: op for op in ops for name in fold_names(op)}
