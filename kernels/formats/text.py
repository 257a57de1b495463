"""Columns of CSV and TSV files, which may be compressed by gzip or zstd.

Text has no dtypes. The first block of a column tells its dtype, or the request names it; a later value that the dtype
does not hold is an error and never changes the dtype. An integer is a number without a point and without an exponent,
and no integer is rounded: pyarrow would read one beyond int64 as the nearest float64.
"""

import re
from collections.abc import Iterator
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.extras import required
from warpfold.kernels.formats.naming import chosen_name, damaged
from warpfold.kernels.formats.row_filter import columns_of
from warpfold.kernels.formats.signature import Format
from warpfold.kernels.formats.tables import ColumnWanted, Reading, random_access
from warpfold.kernels.sequential import SequentialSource

NULLS = ("", "NA", "N/A", "n/a", "#N/A", "NULL", "null")
"""What is read as a null. NaN is a number here."""

_BLOCK_BYTES = 1 << 22
_INTEGER = re.compile(r"[+-]?[0-9]+")
_PRECISION = {"float": 24, "double": 53}


def open_text(file: BinaryIO, packed: Format | None, wanted: ColumnWanted) -> SequentialSource:
    """The elements of a column of text whose first line names the columns. Raises InvalidInput."""
    pyarrow = required("pyarrow", "tables")
    if wanted.delimiter is None:
        raise InvalidInput("is in none of the formats that can be read")
    with damaged("cannot be read as a table of text", pyarrow.ArrowException, OSError, ValueError):
        text = _Text(file, packed, wanted.delimiter)
        inferred = text.opened({}).schema
        name = chosen_name(wanted.column, inferred.names, "a column", "column")
        needed = {name} | (set() if wanted.rows is None else columns_of(wanted.rows) & set(inferred.names))
        types = {column: inferred.field(column).type for column in inferred.names if column in needed}
        types[name] = _type_of(name, types[name], wanted.dtype)
        for column, kind in types.items():
            if pyarrow.types.is_null(kind):
                types[column] = pyarrow.string()
        schema = pyarrow.schema([(column, types.get(column, inferred.field(column).type)) for column in inferred.names])
        reading = Reading.of(schema, wanted)
    hint = "" if wanted.dtype else "; the first block told the dtype, and `dtype` names another"
    likely = file.seek(0, 2) // 8

    def batches() -> Iterator[Any]:
        with damaged("cannot be read as a table of text", OSError, ValueError):
            try:
                yield from text.exact(types)
            except pyarrow.ArrowInvalid as error:
                why = str(error).splitlines()[0][:300]
                raise InvalidInput(f"cannot be read as a table of text: {why}{hint}") from None

    return reading.source(batches, None, likely)


def first_block(file: BinaryIO, packed: Format | None, delimiter: str) -> Any:
    """The columns of text as their first block tells their types: a schema of pyarrow."""
    return _Text(file, packed, delimiter).opened({}).schema


def _type_of(name: str, inferred: Any, chosen: str | None) -> Any:
    """The type to read the column by. Raises InvalidInput naming "dtype" or "column"."""
    pyarrow = required("pyarrow", "tables")
    if chosen is not None:
        if chosen in ("float16", "bfloat16"):
            raise InvalidInput(f"is text, which is not read as {chosen}: float32 holds all values of {chosen}", "dtype")
        return pyarrow.type_for_alias(chosen)
    if pyarrow.types.is_null(inferred):
        raise InvalidInput(f"holds only nulls in the first block of column {name!r}; give its `dtype`", "dtype")
    return inferred


class _Text:
    """A file of text, to be read from its beginning as often as needed."""

    _lines_are_rows = False

    def __init__(self, file: BinaryIO, packed: Format | None, delimiter: str) -> None:
        self._file, self._packed, self._delimiter = file, packed, delimiter
        # An empty line of a single column is a null; of several columns it is none of the table's rows.
        self._lines_are_rows = len(self.opened({}).schema.names) == 1

    def opened(self, types: dict[str, Any]) -> Any:
        """A reader of the columns that `types` names, or of all."""
        pyarrow, csv = required("pyarrow", "tables"), required("pyarrow.csv", "tables")
        stream = random_access(self._file)
        if self._packed is not None:
            stream = pyarrow.CompressedInputStream(stream, self._packed.value)
        return csv.open_csv(
            stream,
            csv.ReadOptions(block_size=_BLOCK_BYTES),
            csv.ParseOptions(delimiter=self._delimiter, ignore_empty_lines=not self._lines_are_rows),
            csv.ConvertOptions(
                include_columns=list(types),
                column_types=types,
                null_values=list(NULLS),
                strings_can_be_null=True,
                quoted_strings_can_be_null=False,
            ),
        )

    def exact(self, types: dict[str, Any]) -> Iterator[Any]:
        """Record batches of the columns. Raises InvalidInput where a float would round an integer.

        Only a float beyond the integers that its format holds can have rounded one: the text is looked at again only
        where a block has such a float."""
        pyarrow = required("pyarrow", "tables")
        floats = {name: _PRECISION[str(kind)] for name, kind in types.items() if str(kind) in _PRECISION}
        again: Iterator[tuple[int, Any]] | None = None
        for number, batch in enumerate(self.opened(types)):
            suspects = {name: rows for name, bits in floats.items() if (rows := _beyond(batch.column(name), bits)).size}
            if suspects:
                again = again or enumerate(self.opened({name: pyarrow.string() for name in floats}))
                words = next(words for at, words in again if at == number)
                for name, rows in suspects.items():
                    _check(name, words.column(name), batch.column(name).to_numpy(zero_copy_only=False), rows)
            yield batch


def _beyond(column: Any, precision: int) -> NDArray[np.intp]:
    """The rows of finite floats beyond the integers that a significand of `precision` bits holds."""
    values = column.to_numpy(zero_copy_only=False)
    return np.flatnonzero(np.isfinite(values) & (np.abs(values) >= 2.0**precision))


def _check(name: str, words: Any, values: NDArray[Any], rows: NDArray[np.intp]) -> None:
    """Raise InvalidInput if one of `rows` was an integer, and is another number as a float."""
    for row in rows:
        word = words[int(row)].as_py().strip()
        if _INTEGER.fullmatch(word) and int(word) != int(values[row]):
            raise InvalidInput(
                f"holds {word[:60]} in column {name!r}, an integer that {values.dtype} would round; `dtype` may name "
                "int64 or uint64",
                "dtype",
            )
