"""Exact aggregates of DataFusion: `warpfold.datafusion.register(context)` adds them to a session.

| SQL | value |
|---|---|
| `warpfold_sum(struct(x))`, `warpfold_dot(struct(x, y))` and so on, as in `warpfold.duckdb` | the value of a group |
| `warpfold_list_sum(struct(array_agg(x)))` and so on, of one column | the same of lists: fast where groups are many |
| `warpfold_bigint_sum(struct(n))`, `warpfold_bigint_list_sum(struct(array_agg(n)))` and so on | the same of BIGINT |
| `warpfold_merge(state)` | the bytes of the merged states of a group |
| `warpfold_state_sum(state)` and the others there | the value of a state |

Elements come in a struct, because DataFusion converts a bare column to the type that a function declares: integers and
decimals would be rounded to DOUBLE without a word. It does not convert structs, and refuses one of other types.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import Any

import datafusion
import numpy as np
import pyarrow
import pyarrow.compute
from datafusion import SessionContext
from numpy.typing import NDArray

from warpfold.engines import numbered, sql
from warpfold.kernels.cpu.accumulator import accumulator
from warpfold.kernels.dtypes import DTYPES, DType
from warpfold.kernels.exact import ExactState, value_of
from warpfold.kernels.ops import Terms, op_named

_STATE = pyarrow.large_binary()
_ANY_STATE = pyarrow.binary_view()
"""What DataFusion converts every kind of bytes to."""

_VALUE = pyarrow.float64()
_FLOAT64 = DTYPES["float64"]
_ELEMENTS: Mapping[str, DType] = MappingProxyType({"": _FLOAT64, "bigint_": DTYPES["int64"]})
"""The dtype of the elements, by what stands before a function's name behind `warpfold_`."""

_MOST_WAITING, _MOST_ARRAYS = 1 << 17, 64
"""Elements that wait to be added together, and the arrays that they are in."""

_TERMS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {"norm1": ("magnitudes",), "norm2": ("squares",), "sum_squares": ("squares",), "var": ("values", "squares"),
     "std": ("values", "squares")}
)  # fmt: skip
"""The terms that the states of an op add up; states of other ops add up values."""


def register(context: SessionContext) -> SessionContext:
    """Add the functions to `context`, which is returned."""
    for prefix, dtype in _ELEMENTS.items():
        for name, asked in sql.AGGREGATES.items():
            result = _STATE if asked.states else _VALUE
            terms = [_Sum.of(each, dtype) for each in _TERMS.get(asked.op, ("values",))]
            make = partial(_Adding, terms, partial(_finished, asked), result)
            _aggregate(context, f"{prefix}{name}", _struct(dtype, 1), result, make, states=len(terms))
            of_lists = partial(_of_lists, name)
            lists = pyarrow.struct([("c0", pyarrow.list_(_arrow_type(dtype)))])
            context.register_udf(
                datafusion.udf(of_lists, [lists], result, "immutable", f"warpfold_{prefix}list_{name}")
            )
        for name, of_states in sql.PAIRS.items():
            result, asked = _STATE if of_states else _VALUE, sql.SqlAggregate("dot", states=of_states)
            make = partial(_Adding, [_Sum.of("products", dtype)], partial(_finished, asked), result)
            _aggregate(context, f"{prefix}{name}", _struct(dtype, 2), result, make, states=1)
    merging = partial(_Merging, [_Sum.of("values", _FLOAT64)], lambda states: states[0].to_bytes(), _STATE)
    _aggregate(context, "merge", _ANY_STATE, _STATE, merging, states=1)
    for name, function in sql.STATE_FUNCTIONS.items():
        takes, gives = [_ANY_STATE] * function.columns, pyarrow.int64() if function.whole else _VALUE
        context.register_udf(datafusion.udf(function.array, takes, gives, "immutable", f"warpfold_state_{name}"))
    return context


def _aggregate(
    context: SessionContext, name: str, takes: Any, gives: Any, make: Callable[[], "_Adding"], *, states: int
) -> None:
    context.register_udaf(datafusion.udaf(make, [takes], gives, [_STATE] * states, "immutable", f"warpfold_{name}"))


def _struct(dtype: DType, columns: int) -> Any:
    """The type of `struct(x)` or `struct(x, y)`, which DataFusion compares and does not convert."""
    return pyarrow.struct([(f"c{place}", _arrow_type(dtype)) for place in range(columns)])


def _arrow_type(dtype: DType) -> Any:
    return pyarrow.from_numpy_dtype(dtype.numpy)


def _of_lists(name: str, structs: Any) -> Any:
    (lists,) = structs.flatten()
    return sql.of_lists(name, lists)


def _finished(asked: sql.SqlAggregate, states: Sequence[ExactState]) -> Any:
    """The bytes of the state, or the value; SQL's value of nothing is null."""
    if asked.states:
        return states[0].to_bytes()
    if not states[0].count or states[0].count <= asked.ddof:
        return None
    return value_of(op_named(asked.op), states, "float64", asked.ddof)


@dataclass(frozen=True, slots=True)
class _Sum:
    """The terms of a sum, and the function that makes an accumulator of them."""

    terms: Terms
    make: Callable[[], Any]

    @classmethod
    def of(cls, name: str, dtype: DType) -> "_Sum":
        """The values, magnitudes or squares of a column, or the products of two."""
        if name == "products":
            return cls(Terms.PRODUCTS, lambda: accumulator([dtype, dtype], Terms.PRODUCTS))
        terms = Terms.PRODUCTS if name == "squares" else Terms.VALUES
        return cls(terms, lambda: accumulator([dtype], terms, magnitudes=name == "magnitudes"))


class _Adding(datafusion.Accumulator):
    """The exact sums of one group. What DataFusion hands on between its threads is the bytes of the states.

    Elements wait in arrays of DataFusion's: an accumulator has some 100 KB and takes as long for few elements as for
    many, and groups may be many and small.
    """

    def __init__(self, sums: Sequence[_Sum], finish: Callable[[Sequence[ExactState]], Any], result: Any) -> None:
        self._sums, self._finish, self._result = sums, finish, result
        self._waiting: list[tuple[NDArray[Any], ...]] = []
        self._rows = 0
        self._adding: list[Any] = []
        self._merged = [ExactState.empty(each.terms) for each in sums]

    def update(self, *values: Any) -> None:
        """Add the elements of structs of one column, or the products of two; rows with a null are left out."""
        (structs,) = values
        values = tuple(structs.flatten())
        if any(column.null_count for column in values):
            present = values[0].is_valid()
            for column in values[1:]:
                present = pyarrow.compute.and_(present, column.is_valid())
            values = tuple(column.filter(present) for column in values)
        self._waiting.append(tuple(column.to_numpy(zero_copy_only=False) for column in values))
        self._rows += len(values[0])
        if self._rows >= _MOST_WAITING or len(self._waiting) > _MOST_ARRAYS:
            self._add()

    def _add(self) -> None:
        if not self._rows:
            return
        columns = [np.concatenate(parts) for parts in zip(*self._waiting, strict=True)]
        self._waiting = [tuple(columns)]
        if self._rows >= _MOST_WAITING:
            self._adding = self._adding or [each.make() for each in self._sums]
            for adding in self._adding:
                adding.add(*columns)
            self._waiting, self._rows = [], 0

    def merge(self, states: list[Any]) -> None:
        """Take in the states of other threads."""
        for place, column in enumerate(states):
            for state in column.drop_null():
                self._merge(place, ExactState.from_bytes(state.as_py()))

    def _merge(self, place: int, state: ExactState) -> None:
        """Merge a state. A state without terms, with which a group begins, merges with states of either kind."""
        merged = self._merged[place]
        if merged.count and state.count:
            self._merged[place] = merged.merge(state)
        elif state.count or not merged.count:
            self._merged[place] = state

    def state(self) -> list[Any]:
        """The bytes of the exact states."""
        return [pyarrow.scalar(state.to_bytes(), _STATE) for state in self._whole()]

    def evaluate(self) -> Any:
        """The value."""
        return pyarrow.scalar(self._finish(self._whole()), self._result)

    def _whole(self) -> list[ExactState]:
        if self._rows:
            columns = [np.concatenate(parts) for parts in zip(*self._waiting, strict=True)]
            for place, each in enumerate(self._sums):
                adding = self._adding[place] if self._adding else each.make()
                adding.add(*columns)
                if not self._adding:
                    self._merge(place, adding.state())
            self._waiting, self._rows = [], 0
        for place, adding in enumerate(self._adding):
            self._merge(place, adding.state())
        self._adding = []
        return self._merged


class _Merging(_Adding):
    """The merged states of one group."""

    def update(self, *values: Any) -> None:
        """Take in an array of states; nulls are left out."""
        self._merge(0, numbered.merge_all(values[0]))
