"""Exact reductions of a column whose rows another engine has put into groups: that engine numbers the groups, and each
value is rounded once.

Partial results are the canonical bytes of exact states (docs/exact-state.md), so that one engine merges what another
has written.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from warpfold.kernels.cpu.accumulator import accumulator
from warpfold.kernels.cpu.finishing import ValueFinish
from warpfold.kernels.cpu.folds import fold_for
from warpfold.kernels.cpu.keyed.column import ColumnFold, ops_by_fold
from warpfold.kernels.cpu.keyed.sums import LevelOrigin
from warpfold.kernels.cpu.pieces import Piece, pieces_of
from warpfold.kernels.cpu.states import MergedStates
from warpfold.kernels.cpu.stream import stream
from warpfold.kernels.dtypes import DType, dtype_of
from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.exact import ExactState, StateError
from warpfold.kernels.exact.column import StateColumn
from warpfold.kernels.exact.encoding import CODES
from warpfold.kernels.formats.tables import dtype_of_column
from warpfold.kernels.machine.cores import usable_cores
from warpfold.kernels.ops import NanPolicy, Op, Terms, empty_value, op_named
from warpfold.kernels.parts.keyed import PART_ROWS, Aggregation, Cells, GroupColumn
from warpfold.kernels.source import ArraySource

OPS = ("sum", "mean", "var", "std", "norm1", "norm2", "sum_squares")
"""The ops that engines of tables get."""

_CODE_AT = 5


def adding_op(name: str) -> Op:
    """The row of an op of OPS; InvalidInput for any other."""
    if name not in OPS:
        raise InvalidInput(f"{name} is not an op of exact sums; known: {', '.join(OPS)}", "op")
    return op_named(name)


def cells_of(array: Any, name: str = "") -> Cells:
    """The elements of an array of pyarrow; nulls are missing. Raises InvalidInput unless they are integers, floats or
    truth values."""
    import pyarrow

    try:
        dtype_of_column(name, array.type)
    except InvalidInput:
        raise _no_numbers(name, array.type) from None
    array = array.combine_chunks() if isinstance(array, pyarrow.ChunkedArray) else array
    if pyarrow.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    if not array.null_count:
        return Cells(np.ascontiguousarray(array.to_numpy(zero_copy_only=False)))
    missing = array.is_null().to_numpy(zero_copy_only=False)
    if not pyarrow.types.is_floating(array.type):
        array = array.fill_null(pyarrow.scalar(0).cast(array.type))
    return Cells(np.ascontiguousarray(array.to_numpy(zero_copy_only=False)), missing)


def checked(dtype: "np.dtype[Any]", name: object) -> DType:
    """The row of a column's dtype. Raises InvalidInput that names the column where it holds no numbers."""
    try:
        return dtype_of(dtype)
    except InvalidInput:
        raise _no_numbers(name, dtype) from None


def _no_numbers(name: object, kind: object) -> InvalidInput:
    column = f"the column {name!r}" if name != "" else "the column"
    return InvalidInput(f"{column} holds {kind}; integers, floats and truth values are reduced", "column")


def result_of(cells: Cells, op: str) -> str:
    """The name of the dtype of the values of `op`, or "integer"."""
    return adding_op(op).result_dtype(dtype_of(cells.elements.dtype))


def reduce_groups(
    cells: Cells,
    numbers: NDArray[Any],
    groups: int,
    op: str,
    *,
    ddof: int = 0,
    min_count: int = 0,
    states: bool = False,
) -> GroupColumn:
    """The values of `groups` groups; with `states` also their exact states.

    Row i of `cells`, shape (rows,), belongs to group numbers[i], from 0 on; a row whose number is negative belongs to
    no group. A value of no elements is that of `kernels.ops`, and missing where the op has none.
    """
    row, dtype = adding_op(op), dtype_of(cells.elements.dtype)
    places = {name: LevelOrigin() for name in ops_by_fold(iter([row]))}
    streamed = stream(_Rows(cells, numbers), lambda: _Groups(row, dtype, groups, places))
    return streamed.fold.column.column(Aggregation(row, 0, op, ddof), groups, min_count, keep=states)


def reduce_lists(
    cells: Cells, offsets: NDArray[Any], op: str, *, ddof: int = 0, min_count: int = 0, states: bool = False
) -> GroupColumn:
    """Do what `reduce_groups` does for lists that lie one behind another: list i has the rows offsets[i] …
    offsets[i + 1] − 1."""
    start, stop = int(offsets[0]), int(offsets[-1])
    missing = None if cells.missing is None else cells.missing[start:stop]
    numbers = np.repeat(np.arange(offsets.size - 1, dtype=np.int32), np.diff(offsets))
    within = Cells(cells.elements[start:stop], missing)
    return reduce_groups(within, numbers, offsets.size - 1, op, ddof=ddof, min_count=min_count, states=states)


def state_of(cells: Cells, terms: Terms = Terms.VALUES) -> ExactState:
    """The exact state of all elements, or with `terms` PRODUCTS of their squares, by one thread."""
    dtype = dtype_of(cells.elements.dtype)
    adding = accumulator([dtype], terms)
    adding.add(_present(cells))
    return adding.state()


def reduce_all(cells: Cells, op: str, *, ddof: int = 0, min_count: int = 0) -> float | int | None:
    """The value of all elements; None where there are fewer than `min_count` elements, or too few for the op."""
    row, dtype = adding_op(op), dtype_of(cells.elements.dtype)
    elements = _present(cells)
    if elements.size < max(min_count, row.least_count(ddof)):
        return None
    if not elements.size:
        return empty_value(row, dtype)
    pieces = pieces_of(ArraySource(np.ascontiguousarray(elements)))
    value: float | int = stream(pieces, lambda: fold_for(row, [dtype], NanPolicy.PROPAGATE, ddof)).fold.value()
    return value


def merge_groups(states: Any, numbers: NDArray[Any], groups: int) -> StateColumn:
    """The merged states of `groups` groups. State i, of an array of pyarrow of bytes, belongs to group numbers[i], from
    0 on; a null, and a state whose number is negative, belongs to no group. A group without states has the state of no
    terms.

    Raises InvalidInput where bytes are no state, or states of values meet states of products.
    """
    merged, _ = _merged(states, numbers, groups)
    return merged.encoded(groups)


def values_of_states(states: Any, *, mean: bool = False) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """The sum, or with `mean` the sum ÷ the count, of each state of an array of pyarrow, rounded once to a float64; and
    which values are missing: those of nulls, and means of no terms. Raises InvalidInput where bytes are no state."""
    merged, present = _merged(states, np.arange(len(states)), len(states))
    missing = ~present | (merged.counts(len(states)) == 0) if mean else ~present
    return _rounded("mean" if mean else "sum", [merged], missing), missing


def merge_all(states: Any) -> ExactState:
    """The merged state of all states of an array of pyarrow; nulls are left out. Raises InvalidInput."""
    column = merge_groups(states, np.zeros(len(states), np.int64), 1)
    return ExactState.from_bytes(column[0])


def roots_of_states(states: Any) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """√ of the sum of each state of sums of squares, rounded once to a float64, as `values_of_states`."""
    merged, present = _merged(states, np.arange(len(states)), len(states), Terms.PRODUCTS)
    return _rounded("norm2", [merged], ~present), ~present


def spreads_of_states(
    sums: Any, squares: Any, *, ddof: int = 0, root: bool = False
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """The variance, or with `root` the standard deviation, rounded once to a float64, of the elements whose values and
    whose squares the states add up, as `values_of_states`; missing of no more than `ddof` elements. Raises InvalidInput
    where the states are not those of the same elements."""
    numbers, groups = np.arange(len(sums)), len(sums)
    values, present = _merged(sums, numbers, groups, Terms.VALUES)
    products, beside = _merged(squares, numbers, groups, Terms.PRODUCTS)
    present, counts = present & beside, values.counts(groups)
    if (counts != products.counts(groups))[present].any():
        raise InvalidInput("a variance needs the values and the squares of the same elements", "state")
    missing = ~present | (counts <= ddof)
    return _rounded("std" if root else "var", [values, products], missing, ddof), missing


def counts_of_states(states: Any) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """How many terms each state has; missing of nulls. Raises InvalidInput where bytes are no state."""
    counts, missing = np.zeros(len(states), np.int64), np.ones(len(states), np.bool_)
    for at, state in enumerate(states.to_pylist()):
        if state is not None:
            try:
                counts[at], missing[at] = ExactState.from_bytes(state).count, False
            except StateError as error:
                raise InvalidInput(str(error), "state") from None
    return counts, missing


def _rounded(op: str, merged: Sequence[MergedStates], missing: NDArray[np.bool_], ddof: int = 0) -> NDArray[np.float64]:
    """The values of all sums, 0 where they are missing."""
    counts = np.where(missing, 0, merged[0].counts(missing.size))
    finish = ValueFinish(op_named(op), "float64", ddof)
    try:
        return finish.values([sums.sums(missing.size) for sums in merged], counts)
    except StateError as error:
        raise InvalidInput(str(error), "state") from None


def _merged(
    states: Any, numbers: NDArray[Any], groups: int, terms: Terms | None = None
) -> tuple[MergedStates, NDArray[np.bool_]]:
    """The sums, and which of `states` are not null. These hold `terms`, or those of the first."""
    import pyarrow

    states = states.cast(pyarrow.large_binary())
    present = np.asarray(states.is_valid().to_numpy(zero_copy_only=False))
    kept = present & (numbers >= 0)
    column = StateColumn.of_arrow(states if kept.all() else states.filter(pyarrow.array(kept)))
    merged = MergedStates(terms or _terms(column))
    try:
        merged.add(column, numbers[kept].astype(np.int64), groups)
    except StateError as error:
        raise InvalidInput(str(error), "state") from None
    return merged, present


def _terms(column: StateColumn) -> Terms:
    """The terms of the first state. The merging checks that the other states have the same terms."""
    first = column[0] if len(column) else b""
    products = len(first) > _CODE_AT and first[_CODE_AT] == CODES[Terms.PRODUCTS]
    return Terms.PRODUCTS if products else Terms.VALUES


def _present(cells: Cells) -> NDArray[Any]:
    return cells.elements if cells.missing is None else cells.elements[~cells.missing]


class _Groups:
    """The groups that one thread adds up."""

    def __init__(self, op: Op, dtype: DType, groups: int, places: dict[str, LevelOrigin]) -> None:
        self._groups = groups
        self.column = ColumnFold(op.name, dtype, ops_by_fold(iter([op])), places, NanPolicy.PROPAGATE)

    def add(self, start: int, rows: tuple[Cells, NDArray[np.int32]]) -> None:
        self.column.add(start, rows[0], rows[1], self._groups)

    def merge(self, other: "_Groups") -> None:
        self.column.merge(other.column, np.arange(self._groups + 1, dtype=np.int32), self._groups)


@dataclass(frozen=True, slots=True)
class _Rows:
    """Rows as a stream takes them: parts that stay in a second-level cache."""

    cells: Cells
    numbers: NDArray[Any]
    reads: bool = False
    ahead_s: float | None = None

    @property
    def likely(self) -> int:
        return int(self.numbers.size)

    def threads(self) -> int:
        return min(usable_cores(), -(-self.likely // PART_ROWS))

    def begin(self) -> Iterator[Piece[tuple[Cells, NDArray[np.int32]]]]:
        for start in range(0, self.likely, PART_ROWS):
            stop = min(start + PART_ROWS, self.likely)
            yield Piece(start, stop, partial(self._part, start, stop))

    def _part(self, start: int, stop: int) -> tuple[Cells, NDArray[np.int32]]:
        missing = None if self.cells.missing is None else self.cells.missing[start:stop]
        elements = np.ascontiguousarray(self.cells.elements[start:stop])
        return Cells(elements, missing), self.numbers[start:stop].astype(np.int32) + np.int32(1)
