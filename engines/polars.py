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
from warpfold.engines.multiplied import multiply_groups
from warpfold.kernels.dtypes import DTYPES
from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.exact.column import StateColumn
from warpfold.kernels.ops import INTEGER
from warpfold.kernels.parts.grouping import Index
from warpfold.kernels.parts.keyed import GroupColumn


@pl.api.register_expr_namespace("exact")
class ExactExpr:
    """Exact reductions of an expression. Nulls are left out; a NaN is an element, and makes its value NaN."""

    def __init__(self, expr: pl.Expr) -> None:
        self._expr = expr

    def sum(self, min_count: int = 0) -> pl.Expr:
        """Σ x, correctly rounded to the dtype of `x`; of no elements 0, of fewer than `min_count` null. Sums of
        integers are Int64 or UInt64; one that does not fit raises InvalidInput when it is computed."""
        return self._reduced("sum", min_count=min_count)

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

    def dot(self, other: pl.Expr | str) -> pl.Expr:
        """Σ x y, correctly rounded, of the rows where neither is null; of no rows 0."""
        return ExactExpr(self._beside(other))._of_lists(_multiplied, None)

    def state(self) -> pl.Expr:
        """The bytes of the exact state of the elements."""
        return self._of_lists(lambda lists: _states(lists, "sum"), pl.Binary)

    def squares(self) -> pl.Expr:
        """The bytes of the exact state of the squares of the elements."""
        return self._of_lists(lambda lists: _states(lists, "sum_squares"), pl.Binary)

    def products(self, other: pl.Expr | str) -> pl.Expr:
        """The bytes of the exact state of the products with those of another column."""
        return ExactExpr(self._beside(other))._of_lists(_states_of_products, pl.Binary)

    def merge(self) -> pl.Expr:
        """The bytes of the merged states of a column of states."""
        return self._of_lists(_merged, pl.Binary)

    def state_sum(self) -> pl.Expr:
        """The sum of each state of a column of states, rounded once to a Float64."""
        return self._expr.map_batches(lambda states: _values(states, mean=False), pl.Float64, is_elementwise=True)

    def state_mean(self) -> pl.Expr:
        """The sum ÷ the count of each state of a column of states, rounded once to a Float64; null of no elements."""
        return self._expr.map_batches(lambda states: _values(states, mean=True), pl.Float64, is_elementwise=True)

    def state_norm2(self) -> pl.Expr:
        """√ of the sum of each state of squares, rounded once to a Float64."""
        return self._expr.map_batches(_roots, pl.Float64, is_elementwise=True)

    def state_var(self, squares: pl.Expr | str, ddof: int = 1) -> pl.Expr:
        """The variance of the elements of each state, of which `squares` has the states of the squares, rounded once to
        a Float64; null where n ≤ ddof."""
        return self._spread(squares, ddof, root=False)

    def state_std(self, squares: pl.Expr | str, ddof: int = 1) -> pl.Expr:
        """The root of `state_var`, rounded once."""
        return self._spread(squares, ddof, root=True)

    def _spread(self, squares: pl.Expr | str, ddof: int, *, root: bool) -> pl.Expr:
        def spread(pairs: pl.Series) -> pl.Series:
            sums, others = (pairs.struct.field(name).to_arrow() for name in ("left", "right"))
            values, missing = numbered.spreads_of_states(sums, others, ddof=ddof, root=root)
            return pl.Series(pairs.name, pyarrow.array(values, mask=missing))

        return self._beside(squares).map_batches(spread, pl.Float64, is_elementwise=True)

    def _beside(self, other: pl.Expr | str) -> pl.Expr:
        """Both columns as one column of pairs, which has the name of this column."""
        right = pl.col(other) if isinstance(other, str) else other
        return pl.struct(self._expr.alias("left"), right.alias("right")).alias(self._expr.meta.output_name())

    def _reduced(self, op: str, ddof: int = 0, min_count: int = 0) -> pl.Expr:
        return self._of_lists(lambda lists: _reduced(lists, op, ddof, min_count), None)

    def _of_lists(self, of_lists: Callable[[pl.Series], pl.Series], dtype: Any) -> pl.Expr:
        if dtype is not None:
            return self._expr.implode().map_batches(of_lists, dtype, is_elementwise=True)

        # To find the dtype, Polars calls the function with made-up lists, and an error then is lost. So elements that
        # are not reduced give the words of their error, which are raised when the real ones are reduced.
        def values_or_words(lists: pl.Series) -> pl.Series:
            fault = _fault(lists)
            return of_lists(lists) if fault is None else pl.Series(lists.name, [fault] * len(lists), pl.String)

        made = self._expr.implode().map_batches(values_or_words, None, is_elementwise=True)
        return made.map_batches(_without_words, pl.self_dtype(), is_elementwise=True)


_OTHERS = ("dot", "state", "squares", "products", "merge")
"""What a Series has beside the ops of one column; arguments of dot and products are expressions or Series."""


@pl.api.register_series_namespace("exact")
class ExactSeries:
    """The exact reductions of a Series: numbers or bytes, where those of an expression are columns."""

    def __init__(self, series: pl.Series) -> None:
        self._series = series

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name not in (*numbered.OPS, *_OTHERS):
            raise AttributeError(f"a Series has no exact.{name}; known: {', '.join((*numbered.OPS, *_OTHERS))}")

        def reduced(*arguments: Any) -> Any:
            arguments = tuple(pl.lit(each) if isinstance(each, pl.Series) else each for each in arguments)
            expr = getattr(ExactExpr(pl.col("x")), name)(*arguments)
            return self._series.alias("x").to_frame().select(expr).item()

        return reduced


def _fault(lists: pl.Series) -> str | None:
    """The words of the error of elements that are not reduced, and of pairs of which one is not."""
    elements = _rows(lists)[0].slice(0, 0)
    try:
        paired = pyarrow.types.is_struct(elements.type) and [part.name for part in elements.type] == ["left", "right"]
        for column in elements.flatten() if paired else [elements]:
            numbered.cells_of(column, lists.name)
    except InvalidInput as error:
        return str(error)
    return None


def _without_words(values: pl.Series) -> pl.Series:
    if values.dtype == pl.String and len(values):
        raise InvalidInput(values[0], "column")
    return values


def _reduced(lists: pl.Series, op: str, ddof: int, min_count: int) -> pl.Series:
    values, offsets = _rows(lists)
    cells = numbered.cells_of(values, lists.name)
    if len(lists) == 1:  # the loops of single sums are faster
        value = numbered.reduce_all(cells, op, ddof=ddof, min_count=min_count)
        return _series(lists.name, [value], numbered.result_of(cells, op), values.type)
    made = numbered.reduce_lists(cells, offsets, op, ddof=ddof, min_count=min_count)
    return _series(lists.name, _listed(made), made.dtype, values.type)


def _listed(made: GroupColumn) -> Any:
    if made.values.dtype == object or made.missing.any():
        return made.listed()
    return made.values


def _series(name: str, values: Any, dtype: str, elements: Any) -> pl.Series:
    if dtype != INTEGER:
        return pl.Series(name, values, pl.Float32 if DTYPES[dtype].itemsize < 8 else pl.Float64)
    wide, bounds = (pl.UInt64, np.iinfo(np.uint64)) if _unsigned(elements) else (pl.Int64, np.iinfo(np.int64))
    if isinstance(values, np.ndarray):
        least, most = values.min(initial=0), values.max(initial=0)
    else:  # some may be missing
        known = [value for value in values if value is not None]
        least, most = min(known, default=0), max(known, default=0)
    for value in (least, most):
        if not bounds.min <= value <= bounds.max:
            raise InvalidInput(f"the sum {value} does not fit {wide}")
    return pl.Series(name, values.astype(bounds.dtype) if isinstance(values, np.ndarray) else values, wide)


def _unsigned(elements: Any) -> bool:
    return bool(pyarrow.types.is_unsigned_integer(elements) or pyarrow.types.is_boolean(elements))


def _states(lists: pl.Series, op: str) -> pl.Series:
    values, offsets = _rows(lists)
    made = numbered.reduce_lists(numbered.cells_of(values, lists.name), offsets, op, states=True)
    return _binary(lists.name, made.states[0])


def _products(lists: pl.Series) -> GroupColumn:
    """Σ x y of each list of pairs."""
    pairs, offsets = _rows(lists)
    left, right = (numbered.cells_of(column, lists.name) for column in pairs.flatten())
    return multiply_groups(left, right, np.repeat(np.arange(len(lists)), np.diff(offsets)), len(lists))


def _multiplied(lists: pl.Series) -> pl.Series:
    made = _products(lists)
    return _series(lists.name, _listed(made), made.dtype, lists.to_arrow().type.value_type.field(0).type)


def _states_of_products(lists: pl.Series) -> pl.Series:
    return _binary(lists.name, _products(lists).states[0])


def _roots(states: pl.Series) -> pl.Series:
    values, missing = numbered.roots_of_states(states.to_arrow())
    return pl.Series(states.name, pyarrow.array(values, mask=missing))


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
