"""The SQL functions that engines of tables get, by their names: aggregates of lists, and values of states.

Aggregates leave nulls out, and their value is null where a group has no elements, or for variances too few. States are
bytes (docs/exact-state.md).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
import pyarrow
from numpy.typing import NDArray

from warpfold.engines import numbered
from warpfold.engines.multiplied import exact_floats, multiply_groups
from warpfold.kernels.parts.keyed import Cells, GroupColumn


@dataclass(frozen=True, slots=True)
class SqlAggregate:
    """The aggregate `warpfold_NAME(x)`: the op of kernels.ops and its ddof, and whether it gives the states of the
    sums, not the values."""

    op: str
    ddof: int = 0
    states: bool = False


AGGREGATES: Mapping[str, SqlAggregate] = MappingProxyType(
    {
        "sum": SqlAggregate("sum"),
        "mean": SqlAggregate("mean"),
        "norm1": SqlAggregate("norm1"),
        "norm2": SqlAggregate("norm2"),
        "sum_squares": SqlAggregate("sum_squares"),
        "var_pop": SqlAggregate("var"),
        "var_samp": SqlAggregate("var", 1),
        "stddev_pop": SqlAggregate("std"),
        "stddev_samp": SqlAggregate("std", 1),
        "state": SqlAggregate("sum", states=True),
        "squares": SqlAggregate("sum_squares", states=True),
    }
)
"""The aggregates of one column, by the name behind `warpfold_`."""

PAIRS: Mapping[str, bool] = MappingProxyType({"dot": False, "products": True})
"""The aggregates of two columns, whose products are added up, and whether each gives the states."""


def of_lists(name: str, lists: Any) -> Any:
    """The aggregate of that name of each list of an array of pyarrow; of "merge" the lists are of states."""
    offsets = lists.offsets.to_numpy().astype(np.int64)
    if name == "merge":
        start, stop = int(offsets[0]), int(offsets[-1])
        return numbered.merge_groups(lists.values.slice(start, stop - start), _numbers(offsets), len(lists)).array()
    asked, cells = AGGREGATES[name], _cells(lists.values)
    made = numbered.reduce_lists(cells, offsets, asked.op, ddof=asked.ddof, states=asked.states)
    return made.states[0].array() if asked.states else _doubles(made)


def of_pairs_of_lists(name: str, lefts: Any, rights: Any) -> Any:
    """The aggregate "dot" or "products" of two arrays of lists, which lie alike; a row with a null is left out."""
    offsets = lefts.offsets.to_numpy().astype(np.int64)
    others = rights.offsets.to_numpy().astype(np.int64)
    left, right = (
        _cells(lists.values.slice(int(at[0]), int(at[-1] - at[0])))
        for lists, at in ((lefts, offsets), (rights, others))
    )
    return of_pairs(name, left, right, _numbers(offsets), len(lefts))


def of_pairs(name: str, left: Cells, right: Cells, numbers: NDArray[Any], groups: int) -> Any:
    """The aggregate "dot" or "products" of each group, whose rows are numbered, as an array of pyarrow."""
    if "f" in (left.elements.dtype.kind, right.elements.dtype.kind):
        left, right = (_as_floats(cells) for cells in (left, right))
    made = multiply_groups(left, right, numbers, groups)
    return made.states[0].array() if PAIRS[name] else _doubles(made)


def _cells(array: Any) -> Cells:
    """The elements of an array of pyarrow as float64, or as integers. Raises InvalidInput for others."""
    if pyarrow.types.is_floating(array.type) or pyarrow.types.is_null(array.type):
        array = array.cast(pyarrow.float64())
    return numbered.cells_of(array)


def _as_floats(cells: Cells) -> Cells:
    if cells.elements.dtype.kind == "f":
        return cells
    return Cells(
        exact_floats(cells.elements.astype(np.int64) if cells.elements.dtype == bool else cells.elements), cells.missing
    )


def _doubles(made: GroupColumn) -> Any:
    """The values, null of no elements. Sums of integers are rounded here."""
    missing = made.missing | (made.counts == 0)
    return pyarrow.array(np.where(missing, 0, made.values).astype(np.float64), pyarrow.float64(), mask=missing)


def _numbers(offsets: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.repeat(np.arange(offsets.size - 1), np.diff(offsets))


@dataclass(frozen=True, slots=True)
class OfStates:
    """The function `warpfold_state_NAME` of states, and of how many columns of them: one of sums and, for a variance,
    one of sums of squares. `whole` says that its values are integers."""

    function: Callable[..., tuple[NDArray[Any], NDArray[np.bool_]]]
    columns: int = 1
    whole: bool = False

    def array(self, *columns: Any) -> Any:
        """The values as an array of pyarrow."""
        values, missing = self.function(*columns)
        return pyarrow.array(values, pyarrow.int64() if self.whole else pyarrow.float64(), mask=missing)


def _spread(root: bool, ddof: int) -> OfStates:
    return OfStates(lambda sums, squares: numbered.spreads_of_states(sums, squares, ddof=ddof, root=root), 2)


STATE_FUNCTIONS: Mapping[str, OfStates] = MappingProxyType(
    {
        "sum": OfStates(numbered.values_of_states),
        "mean": OfStates(lambda states: numbered.values_of_states(states, mean=True)),
        "norm2": OfStates(numbered.roots_of_states),
        "count": OfStates(numbered.counts_of_states, whole=True),
        "var_pop": _spread(root=False, ddof=0),
        "var_samp": _spread(root=False, ddof=1),
        "stddev_pop": _spread(root=True, ddof=0),
        "stddev_samp": _spread(root=True, ddof=1),
    }
)
"""The functions of states, by the name behind `warpfold_state_`."""
