"""Exact reductions of Polars: an import adds the namespace `exact` to expressions and to Series.

`frame.group_by("k").agg(pl.col("x").exact.sum())` works for eager and lazy frames, in `select`, `group_by` and `over`.
Polars gathers the elements of each group in a list, and one call adds up the lists of all groups. So a group-by holds
its whole column in memory, on the streaming engine as well; `warpfold.arrow.group_by` takes a LazyFrame batch by batch.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl
import pyarrow

from warpfold.engines import numbered
from warpfold.kernels.dtypes import DTYPES
from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.exact.column import StateColumn
from warpfold.kernels.grouping import Index
from warpfold.kernels.keyed import GroupColumn
from warpfold.kernels.ops import INTEGER


@pl.api.register_expr_namespace("exact")
class ExactExpr:
    """Exact reductions of an expression. Nulls are left out; a NaN is an element, and makes its value NaN."""

    def __init__(self, expr: pl.Expr) -> None:
        self._expr = expr

    def sum(self) -> pl.Expr:
        """Σ x, correctly rounded to the dtype of `x`; of no elements 0. Sums of integers are Int64 or UInt64; one that
        does not fit raises InvalidInput when it is computed."""
        return self._reduced("sum")

    def mean(self) -> pl.Expr:
        """Σ x / n, rounded once; null where there are no elements."""
        return self._reduced("mean")

    def var(self, ddof: int = 1) -> pl.Expr:
        """Σ (x − mean)² / (n − ddof) of the exact mean, rounded once; null where n ≤ ddof."""
        return self._reduced("var", ddof)

    def std(self, ddof: int = 1) -> pl.Expr:
        """The root of `var`, rounded once."""
        return self._reduced("std", ddof)

    def norm1(self) -> pl.Expr:
        """Σ |x|, correctly rounded."""
        return self._reduced("norm1")

    def norm2(self) -> pl.Expr:
        """√ Σ x², rounded once."""
        return self._reduced("norm2")

    def sum_squares(self) -> pl.Expr:
        """Σ x², correctly rounded."""
        return self._reduced("sum_squares")

    def state(self) -> pl.Expr:
        """The bytes of the exact state of the elements."""
        return self._of_lists(_states, pl.Binary)

    def merge(self) -> pl.Expr:
        """The bytes of the merged states of a column of states."""
        return self._of_lists(_merged, pl.Binary)

    def state_sum(self) -> pl.Expr:
        """The sum of each state of a column of states, rounded once to a Float64."""
        return self._expr.map_batches(lambda states: _values(states, mean=False), pl.Float64, is_elementwise=True)

    def state_mean(self) -> pl.Expr:
        """The sum ÷ the count of each state of a column of states, rounded once to a Float64; null of no elements."""
        return self._expr.map_batches(lambda states: _values(states, mean=True), pl.Float64, is_elementwise=True)

    def _reduced(self, op: str, ddof: int = 0) -> pl.Expr:
        return self._of_lists(lambda lists: _reduced(lists, op, ddof), None)

    def _of_lists(self, of_lists: Callable[[pl.Series], pl.Series], dtype: Any) -> pl.Expr:
        # Polars asks for the dtype by a call with made-up lists where it is not named.
        return self._expr.implode().map_batches(of_lists, dtype, is_elementwise=True)


@pl.api.register_series_namespace("exact")
class ExactSeries:
    """The exact reductions of a Series: numbers or bytes, where those of an expression are columns."""

    def __init__(self, series: pl.Series) -> None:
        self._series = series

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name not in (*numbered.OPS, "state", "merge"):
            raise AttributeError(f"a Series has no exact.{name}; known: {', '.join(numbered.OPS)}, state, merge")

        def reduced(*arguments: Any) -> Any:
            expr = getattr(ExactExpr(pl.col("x")), name)(*arguments)
            return self._series.alias("x").to_frame().select(expr).item()

        return reduced


def _reduced(lists: pl.Series, op: str, ddof: int) -> pl.Series:
    values, offsets = _rows(lists)
    cells = numbered.cells_of(values, lists.name)
    if len(lists) == 1:  # the loops of single sums are faster
        value = numbered.reduce_all(cells, op, ddof=ddof)
        return _series(lists.name, [value], numbered.result_of(cells, op), values.type)
    made = numbered.reduce_lists(cells, offsets, op, ddof=ddof)
    return _series(lists.name, _listed(made), made.dtype, values.type)


def _listed(made: GroupColumn) -> Any:
    if made.values.dtype == object or made.missing.any():
        return made.listed()
    return made.values


def _series(name: str, values: Any, dtype: str, elements: Any) -> pl.Series:
    if dtype != INTEGER:
        return pl.Series(name, values, pl.Float32 if DTYPES[dtype].itemsize < 8 else pl.Float64)
    wide, bounds = (pl.UInt64, np.iinfo(np.uint64)) if _unsigned(elements) else (pl.Int64, np.iinfo(np.int64))
    values = np.asarray(values)
    for value in (values.min(initial=0), values.max(initial=0)):
        if not bounds.min <= value <= bounds.max:
            raise InvalidInput(f"the sum {value} does not fit {wide}")
    return pl.Series(name, values.astype(bounds.dtype), wide)


def _unsigned(elements: Any) -> bool:
    return bool(pyarrow.types.is_unsigned_integer(elements) or pyarrow.types.is_boolean(elements))


def _states(lists: pl.Series) -> pl.Series:
    values, offsets = _rows(lists)
    made = numbered.reduce_lists(numbered.cells_of(values, lists.name), offsets, "sum", states=True)
    return _binary(lists.name, made.states[0])


def _merged(lists: pl.Series) -> pl.Series:
    values, offsets = _rows(lists)
    numbers = np.repeat(np.arange(len(lists)), np.diff(offsets))
    return _binary(lists.name, numbered.merge_groups(values, numbers, len(lists)))


def _binary(name: str, states: StateColumn) -> pl.Series:
    return pl.Series(name, pl.from_arrow(states.array()), pl.Binary)


def _values(states: pl.Series, *, mean: bool) -> pl.Series:
    values, missing = numbered.values_of_states(states.to_arrow().cast(pyarrow.large_binary()), mean=mean)
    return pl.Series(states.name, pyarrow.array(values, mask=missing))


def _rows(lists: pl.Series) -> tuple[Any, Index]:
    """The elements of all lists, an array of pyarrow, and where each list begins among them."""
    array = lists.to_arrow()
    offsets = array.offsets.to_numpy().astype(np.int64)
    start, stop = int(offsets[0]), int(offsets[-1])
    return array.values.slice(start, stop - start), offsets - start
