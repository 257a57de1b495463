"""Exact reductions of pandas: of a Series, a DataFrame and their groups, each value rounded once.

`exact.sum(frame.groupby("k"))` numbers the rows by their group and adds them up in one pass. The same function serves
`frame.groupby("k").agg(exact.sum)`, where pandas calls it once a group, which takes some tens of microseconds each.
An import adds the accessor `exact` to Series and DataFrames.
"""

from collections.abc import Callable
from functools import partial, wraps
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from warpfold.engines import numbered
from warpfold.engines.multiplied import multiply_groups
from warpfold.kernels.dtypes import DTYPES
from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.exact.column import StateColumn
from warpfold.kernels.ops import INTEGER, Terms
from warpfold.kernels.parts.grouping import Index
from warpfold.kernels.parts.keyed import Cells, GroupColumn

Data = Any
"""A Series, a DataFrame, or what `groupby` of these gives."""


def sum(x: Data, *, skipna: bool = True, min_count: int = 0) -> Any:
    """Σ x, correctly rounded to the dtype of the column; of integers exact, as int64 or uint64.

    The answer has the shape of that of `x.sum()`: a number for a Series, a Series for a DataFrame or groups of one, a
    DataFrame for groups of several columns. Of fewer than `min_count` elements it is missing. Missing elements are left
    out; with `skipna=False` they make their value missing. Raises InvalidInput for a column that holds no numbers, or a
    sum of integers that 64 bits do not hold.
    """
    return _reduced(x, "sum", skipna, min_count)


def mean(x: Data, *, skipna: bool = True) -> Any:
    """Σ x / n, rounded once; missing where there are no elements."""
    return _reduced(x, "mean", skipna)


def var(x: Data, *, skipna: bool = True, ddof: int = 1) -> Any:
    """Σ (x − mean)² / (n − ddof) of the exact mean, rounded once; missing where n ≤ ddof."""
    return _reduced(x, "var", skipna, ddof=ddof)


def std(x: Data, *, skipna: bool = True, ddof: int = 1) -> Any:
    """The root of `var`, rounded once."""
    return _reduced(x, "std", skipna, ddof=ddof)


def norm1(x: Data, *, skipna: bool = True) -> Any:
    """Σ |x|, correctly rounded."""
    return _reduced(x, "norm1", skipna)


def norm2(x: Data, *, skipna: bool = True) -> Any:
    """√ Σ x², rounded once."""
    return _reduced(x, "norm2", skipna)


def sum_squares(x: Data, *, skipna: bool = True) -> Any:
    """Σ x², correctly rounded."""
    return _reduced(x, "sum_squares", skipna)


def dot(x: Data, y: Any) -> Any:
    """Σ x y of two Series, correctly rounded. They are aligned by their labels, which have to be the same. Or `x` is
    groups of a DataFrame, and `y` names two of its columns, whose products are added up in each group. Rows where
    either is missing are left out; of none it is 0. Raises InvalidInput for other labels."""
    made, of = _multiplied(x, y)
    if isinstance(x, pd.Series):
        return (
            _integer(made.values.tolist()[0])
            if made.dtype == INTEGER
            else DTYPES[made.dtype].numpy.type(made.values[0])
        )
    return _shaped(of, lambda _: None, lambda *_: _array(made, made.missing))


def products(x: Data, y: Any) -> Any:
    """The bytes of the exact states of the products that `dot` adds up, in its shape."""
    made, of = _multiplied(x, y)
    listed = _listed(made.states[0])
    return listed[0] if isinstance(x, pd.Series) else _shaped(of, lambda _: None, lambda *_: listed)


def _multiplied(x: Data, y: Any) -> tuple[GroupColumn, Data]:
    """The sums of products, and the groups of the first of both columns."""
    if isinstance(x, pd.Series):
        if not isinstance(y, pd.Series):
            raise InvalidInput("a dot product needs two Series", "y")
        y = _aligned(y, x, "y")
        numbers: Index = np.zeros(len(x), np.int64)
        return multiply_groups(_cells(x, skipna=True), _cells(y, skipna=True), numbers, 1), x
    if not isinstance(x, pd.api.typing.DataFrameGroupBy) or isinstance(y, str) or len(y) != 2:
        raise TypeError("give two Series to a dot product, or groups of a DataFrame and the names of two columns")
    left, right = (_cells(x.obj[name], skipna=True) for name in y)
    sizes = x.size()
    counts = (sizes["size"] if isinstance(sizes, pd.DataFrame) else sizes).to_numpy()
    return multiply_groups(left, right, _numbers(x, counts), counts.size), x[y[0]]


def state(x: Data) -> Any:
    """The bytes of the exact states of the elements that are not missing, in the shape that `sum` has."""
    return _states(x, "sum", Terms.VALUES)


def squares(x: Data) -> Any:
    """The bytes of the exact states of the squares of the elements, as `state`."""
    return _states(x, "sum_squares", Terms.PRODUCTS)


def _states(x: Data, op: str, terms: Terms) -> Any:
    def of_column(column: Any) -> bytes:
        return numbered.state_of(_cells(column, skipna=True), terms).to_bytes()

    def of_groups(column: Any, numbers: Index, groups: int) -> list[bytes]:
        made = numbered.reduce_groups(_cells(column, skipna=True), numbers, groups, op, states=True)
        return _listed(made.states[0])

    return _shaped(x, of_column, of_groups)


def merge(x: Data) -> Any:
    """The bytes of the merged states of a column of states, in the shape that `sum` has; missing ones are left out.
    Raises InvalidInput where bytes are no state."""
    import pyarrow

    def of_column(column: Any) -> bytes:
        return numbered.merge_all(pyarrow.array(column, pyarrow.large_binary(), from_pandas=True)).to_bytes()

    def of_groups(column: Any, numbers: Index, groups: int) -> list[bytes]:
        states = pyarrow.array(column, pyarrow.large_binary(), from_pandas=True)
        return _listed(numbered.merge_groups(states, numbers, groups))

    return _shaped(x, of_column, of_groups)


def state_sum(states: "pd.Series[Any]") -> "pd.Series[Any]":
    """The sum of each state of a Series, rounded once to a float64."""
    return _values(states, mean=False)


def state_mean(states: "pd.Series[Any]") -> "pd.Series[Any]":
    """The sum ÷ the count of each state of a Series, rounded once to a float64."""
    return _values(states, mean=True)


def state_norm2(states: "pd.Series[Any]") -> "pd.Series[Any]":
    """√ of the sum of each state of squares, rounded once to a float64."""
    return _of_states(numbered.roots_of_states, states)


def state_var(states: "pd.Series[Any]", squares: "pd.Series[Any]", *, ddof: int = 1) -> "pd.Series[Any]":
    """The variance of the elements of each state, of which `squares` has the states of the squares, rounded once. Both
    Series are aligned by their labels."""
    return _of_states(partial(numbered.spreads_of_states, ddof=ddof), states, squares)


def state_std(states: "pd.Series[Any]", squares: "pd.Series[Any]", *, ddof: int = 1) -> "pd.Series[Any]":
    """The root of `state_var`, rounded once."""
    return _of_states(partial(numbered.spreads_of_states, ddof=ddof, root=True), states, squares)


def _aligned(y: Any, x: Any, field: str) -> Any:
    """The elements of the Series `y` in the order of the labels of `x`. Raises InvalidInput where both have not the
    same labels, or where these occur twice in another order."""
    if y.index.equals(x.index):
        return y
    if len(x) == len(y) and x.index.is_unique and y.index.is_unique:
        places = y.index.get_indexer(x.index)
        if (places >= 0).all():
            return y.iloc[places]
    raise InvalidInput(
        "the two Series have not the same labels, each once: align them, as by x.align(y, join='inner'), or drop the "
        "labels by reset_index(drop=True)",
        field,
    )


def _values(states: Any, *, mean: bool) -> Any:
    return _of_states(partial(numbered.values_of_states, mean=mean), states)


def _of_states(function: Callable[..., Any], *columns: Any) -> Any:
    import pyarrow

    states = columns[0]
    columns = tuple(_aligned(each, states, "squares") for each in columns)
    values, missing = function(*(pyarrow.array(each, pyarrow.large_binary(), from_pandas=True) for each in columns))
    return pd.Series(np.where(missing, np.nan, values), index=states.index, name=states.name)


def _reduced(x: Data, op: str, skipna: bool, min_count: int = 0, *, ddof: int = 0) -> Any:
    def of_column(column: Any) -> Any:
        cells = _cells(column, skipna=skipna)
        if cells.missing is not None and not skipna and cells.missing.any():
            return np.nan
        value = numbered.reduce_all(cells, op, ddof=ddof, min_count=min_count)
        if value is None:
            return np.nan
        name = numbered.result_of(cells, op)
        return _integer(value) if name == INTEGER else DTYPES[name].numpy.type(value)

    def of_groups(column: Any, numbers: Index, groups: int) -> Any:
        cells = _cells(column, skipna=skipna)
        made = numbered.reduce_groups(cells, numbers, groups, op, ddof=ddof, min_count=min_count)
        missing = made.missing
        if not skipna and cells.missing is not None:
            missing = missing | (np.bincount(numbers[cells.missing & (numbers >= 0)], minlength=groups) > 0)
        return _array(made, missing)

    return _shaped(x, of_column, of_groups)


def _shaped(x: Data, of_column: Callable[[Any], Any], of_groups: Callable[[Any, Index, int], Any]) -> Any:
    """The values of the columns of `x`, with the index that pandas gives them. Columns may have one name."""
    if isinstance(x, pd.Series):
        return of_column(x)
    if isinstance(x, pd.DataFrame):
        return _side_by_side([of_column(column) for _, column in x.items()], x.columns)
    if not isinstance(x, pd.api.typing.SeriesGroupBy | pd.api.typing.DataFrameGroupBy):
        raise TypeError(f"give a Series, a DataFrame or groups of these, not a {type(x).__name__}")
    sizes = x.size()
    if isinstance(x, pd.api.typing.SeriesGroupBy):
        columns = x.obj.to_frame() if x.obj.name is not None else x.obj.to_frame(0)
    else:
        columns = x._obj_with_exclusions  # the selected columns, without the keys
    keys = sizes.drop(columns="size") if isinstance(sizes, pd.DataFrame) else pd.DataFrame(index=sizes.index)
    counts = (sizes["size"] if isinstance(sizes, pd.DataFrame) else sizes).to_numpy()
    numbers = _numbers(x, counts)
    made = {at: of_groups(column, numbers, counts.size) for at, (_, column) in enumerate(columns.items())}
    values = pd.DataFrame(made, index=keys.index).set_axis(columns.columns, axis=1)
    frame = pd.concat([keys, values], axis=1)
    if isinstance(x, pd.api.typing.SeriesGroupBy) and not isinstance(sizes, pd.DataFrame):
        return frame[columns.columns[0]].rename(x.obj.name)
    return frame


def _side_by_side(values: list[Any], names: "pd.Index[Any]") -> "pd.Series[Any]":
    """The values of several columns. Where pandas would round an integer to stand beside floats, they are objects."""
    made = pd.Series(values, index=names)
    whole = ((at, value) for at, value in enumerate(values) if isinstance(value, np.integer))
    if made.dtype.kind == "f" and any(int(made.iloc[at]) != value for at, value in whole):
        return pd.Series(values, index=names, dtype=object)
    return made


def _numbers(groups: Any, counts: NDArray[Any]) -> Index:
    """The place of each row's group in the index of the result; −1 where the key is missing. pandas numbers the groups
    that have rows, and the index of categories has others, too."""
    numbers = groups.ngroup()
    if numbers.dtype.kind != "i":
        numbers = numbers.fillna(-1)
    places = np.append(np.flatnonzero(counts), -1)
    return np.asarray(places[numbers.to_numpy().astype(np.int64)], np.int32)


def _cells(column: Any, *, skipna: bool) -> Cells:
    """The elements of a Series. A NaN of a NumPy dtype is missing where missing elements are skipped, else a number."""
    dtype = column.dtype
    if isinstance(dtype, np.dtype):
        elements = column.to_numpy()
        numbered.checked(elements.dtype, column.name)
        missing = np.isnan(elements) if skipna and dtype.kind == "f" else None
        return Cells(elements, missing if missing is not None and missing.any() else None)
    stored = getattr(dtype, "numpy_dtype", None)
    if stored is None:
        raise InvalidInput(f"the column {column.name!r} holds {dtype}, and no numbers", "column")
    numbered.checked(stored, column.name)
    missing = column.isna().to_numpy()
    return Cells(column.to_numpy(dtype=stored, na_value=stored.type(0)), missing if missing.any() else None)


def _integer(value: Any) -> Any:
    if value < -(1 << 63) or value >= 1 << 64:
        raise InvalidInput(f"the sum {value} does not fit 64 bits")
    return np.int64(value) if value < 1 << 63 else np.uint64(value)


def _array(made: GroupColumn, missing: NDArray[np.bool_]) -> Any:
    """The values as a column: floats of their dtype; integers as int64 or uint64, nullable where one is missing."""
    if made.dtype != INTEGER:
        with np.errstate(over="ignore", invalid="ignore"):
            return np.where(missing, np.nan, made.values).astype(DTYPES[made.dtype].numpy)
    if made.values.dtype == object:
        raise InvalidInput("a sum does not fit 64 bits")
    return pd.arrays.IntegerArray(made.values, missing) if missing.any() else made.values


def _listed(states: StateColumn) -> list[bytes]:
    return [states[at] for at in range(len(states))]


class _Accessor:
    """The exact reductions of a Series or a DataFrame, such as `frame.price.exact.sum()`."""

    def __init__(self, data: Any) -> None:
        self._data = data


def _of_data(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of this module as a method of the accessor."""

    @wraps(function)
    def method(accessor: _Accessor, **options: Any) -> Any:
        return function(accessor._data, **options)

    return method


for _each in (sum, mean, var, std, norm1, norm2, sum_squares, state):
    setattr(_Accessor, _each.__name__, _of_data(_each))

pd.api.extensions.register_series_accessor("exact")(_Accessor)
pd.api.extensions.register_dataframe_accessor("exact")(_Accessor)
