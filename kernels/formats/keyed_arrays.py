"""Rows for groups of arrays that stand side by side as columns."""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

from warpfold.kernels.dtypes import DTYPES, DType
from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.formats.frames import check_key
from warpfold.kernels.lowering.nulls import keeps_nulls, truths_of
from warpfold.kernels.lowering.reducing import refuse_meaning
from warpfold.kernels.machine.extras import required
from warpfold.kernels.parts.keyed import PART_ROWS, Cells, KeyedPart, KeyedRows, KeyedSource, WholeColumns
from warpfold.kernels.source import part_of
from warpfold.kernels.sources.sequential import Elements, SequentialSource, gathered


def keyed_arrays(
    keys: Sequence[tuple[str, Elements | Any, str]],
    columns: Sequence[tuple[str, Elements, str]],
    between: tuple[int, int] | None = None,
) -> KeyedSource:
    """Rows of arrays that stand side by side, or a range of these rows. Each array comes with its name and the field of
    the request that names it. Keys are elements, or an array of pyarrow. Raises InvalidInput with the field of an array
    of another length, or of elements that cannot be keys."""
    pyarrow = required("pyarrow", "tables")
    for _, array, where in (*keys, *columns):
        refuse_meaning(array, "a group-by", where)
    opened = [array for _, array, _ in (*keys, *columns) if isinstance(array, SequentialSource)]
    held = [
        (name, array if isinstance(array, pyarrow.Array) else gathered(array), where) for name, array, where in keys
    ]
    nulls = [gathered(truths_of(array)) if keeps_nulls(array) else None for _, array, _ in columns]
    sources = [(name, gathered(array), where) for name, array, where in columns]
    count = _common_length([*held, *sources])
    types = []
    for name, array, where in held:
        kind = array.type if isinstance(array, pyarrow.Array) else _type_of(array.dtype)
        check_key(name, kind, where)
        types.append(kind)
    if between is not None:
        start, stop = between
        count = stop - start
        held, sources = (
            [(name, _cut(array, start, stop), where) for name, array, where in each] for each in (held, sources)
        )

    def rows(start: int, stop: int) -> KeyedRows:
        taken = tuple(
            _cut(array, start, stop)
            if isinstance(array, pyarrow.Array)
            else pyarrow.array(np.ascontiguousarray(array.read(start, stop)))
            for _, array, _ in held
        )
        cells = (
            Cells(np.ascontiguousarray(array.read(start, stop)), None if truths is None else truths.read(start, stop))
            for (_, array, _), truths in zip(sources, nulls, strict=True)
        )
        return KeyedRows(start, taken, tuple(cells))

    def parts() -> Iterator[KeyedPart]:
        for start in range(0, count, PART_ROWS):
            stop = min(start + PART_ROWS, count)
            yield KeyedPart(start, stop, partial(rows, start, stop))

    by_position = (
        len(held) == 1
        and not isinstance(held[0][1], pyarrow.Array)
        and not any(nulls)
        and not held[0][1].dtype.is_float  # of which several stand for one key
    )
    only = held[0][1] if by_position else None
    return KeyedSource(
        key_names=tuple(name for name, _, _ in held),
        key_types=tuple(types),
        column_names=tuple(name for name, _, _ in sources),
        dtypes=tuple(array.dtype for _, array, _ in sources),
        begin=parts,
        likely=count,
        remotes=lambda: [remote for array in opened for remote in array.tally.objects],
        whole=None if only is None else WholeColumns(only, tuple(array for _, array, _ in sources)),
        files=tuple((name, array) for name, array, _ in (*held, *sources)),
    )


def _common_length(arrays: Sequence[tuple[str, Any, str]]) -> int:
    """The length that all arrays have. Raises InvalidInput with the field of the first array of another length."""
    first, *others = [(where, _length(array)) for _, array, where in arrays]
    for where, length in others:
        if length != first[1]:
            raise InvalidInput(f"has {length:,} elements, and {first[0]} {first[1]:,}: a row needs one of each", where)
    return first[1]


def _cut(array: Any, start: int, stop: int) -> Any:
    """Elements start … stop − 1 of a source, or of an array of pyarrow."""
    return part_of(array, start, stop) if hasattr(array, "dtype") else array.slice(start, stop - start)


def _length(array: Any) -> int:
    return int(array.count) if hasattr(array, "dtype") else len(array)


def _type_of(dtype: DType) -> Any:
    """pyarrow's type for keys of `dtype`. pyarrow has no bfloat16. float16 stands for it, which is safe because keys of
    either dtype are refused."""
    pyarrow = required("pyarrow", "tables")
    return pyarrow.from_numpy_dtype(dtype.numpy if dtype.native else DTYPES["float16"].numpy)
