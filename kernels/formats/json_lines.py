"""Columns of JSON lines: an object a line, whose names are those of the columns.

The beginning of the file tells the columns and their types, read by Python's json with numbers as they are written;
pyarrow reads the blocks by these types. No number changes in silence: pyarrow rounds integers to floats, so floats
beyond the integers that they hold exactly are compared with their words, as those of other text are.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.formats.dialect import Dialect, TextOptions
from warpfold.kernels.formats.signature import Format
from warpfold.kernels.formats.text_blocks import Lines, TextLines
from warpfold.kernels.formats.text_rows import TextRows
from warpfold.kernels.formats.text_types import PRECISION, TextColumns, TextTypes, beyond, check_floats
from warpfold.kernels.machine.extras import required

_ROW = re.compile(r"in row (\d+)")
_TOLD_BYTES = 1 << 20
"""The beginning of a file that tells the columns: Python's json reads it at some 20 MB/s."""

_BEHIND_SPACE = re.compile(r"[ \t\r\n]*")
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")


class JsonLines(TextRows):
    """A file of JSON lines, to be read from its beginning as often as needed. Raises InvalidInput where its beginning
    is none."""

    def __init__(self, file: BinaryIO, packed: Format | None, options: TextOptions) -> None:
        options.check_unused()
        super().__init__(TextLines(file, packed, Dialect(quote="")), [])
        self._columns = _columns_of(self.lines.first_block(_TOLD_BYTES))
        self.names: Sequence[str] = [*self._columns]

    compares_words = False

    def types(self, columns: Sequence[str] | None = None) -> TextTypes:
        """The types of the named columns or of all, as the beginning of the file tells them."""
        pyarrow = required("pyarrow", "tables")
        chosen = {name: self._columns[name] for name in self.names if columns is None or name in columns}
        odd = {name: word for name, column in chosen.items() if (word := column.odd_word()) is not None}
        fields = [(name, column.kind()) for name, column in chosen.items()]
        return TextTypes(pyarrow.schema(fields), Dialect(), odd, {})

    def why_refused(self, types: TextTypes, name: str) -> str | None:
        """Why a column that has numbers is not reduced, where one of them is the reason."""
        if name not in types.odd:
            return None
        return (
            f"holds {types.odd[name][:60]} in column {name!r} of integers, which int64 does not hold, and by which all "
            "would become floats: `dtype` may name uint64 or float64"
        )

    def key_types(self, columns: Sequence[str]) -> Mapping[str, Any]:
        """The types by which columns are keys: strings stay strings."""
        pyarrow, types = required("pyarrow", "tables"), self.types(columns).schema
        return {
            name: pyarrow.string() if pyarrow.types.is_timestamp(kind) else kind
            for name, kind in zip(types.names, types.types, strict=True)
        }

    def exact(self, number: int, lines: Lines, columns: TextColumns, plain: Any) -> Iterator[Any]:
        """Record batches of the columns in the block with this number. Raises InvalidInput where a float would round an
        integer, and the errors that pyarrow raises for the text."""
        if not bytes(lines.text).strip():
            return
        table = self._parsed(number, lines.text, columns)
        floats = {name: PRECISION[str(kind)] for name, kind in columns.types.items() if str(kind) in PRECISION}
        for name, bits in floats.items():
            rows = beyond(table.column(name), bits)
            if rows.size:
                _check(name, lines.text, table.column(name).to_numpy(), rows)
        yield from table.to_batches()

    def _parsed(self, number: int, text: memoryview, columns: TextColumns) -> Any:
        pyarrow, reader = required("pyarrow", "tables"), required("pyarrow.json", "tables")
        schema = pyarrow.schema(list(columns.types.items()))
        parsing = reader.ParseOptions(explicit_schema=schema, unexpected_field_behavior="ignore")
        reading = reader.ReadOptions(use_threads=False, block_size=len(text) + 1)
        try:
            table = reader.read_json(pyarrow.BufferReader(text), reading, parsing)
            for column in table.columns:
                column.validate(full=str(column.type) == "string")  # pyarrow takes any bytes for letters
        except pyarrow.ArrowInvalid as error:
            before = self.rows_before(number)
            why = _ROW.sub(lambda match: f"in row {int(match[1]) + before + 1:,}", str(error).splitlines()[0])
            raise InvalidInput(f"cannot be read as JSON lines: {why[:300]}") from None
        return table.select(list(columns.types))


def _check(name: str, text: memoryview, values: NDArray[Any], rows: NDArray[np.intp]) -> None:
    words = [row.get(name) for row in _rows_in(text)]
    check_floats(name, required("pyarrow", "tables").array([str(word) for word in words]), values, rows)


class _Integer(str):
    """An integer as it is written."""

    __slots__ = ()


class _Fraction(str):
    """A number with a point or an exponent, or one that is not finite, as it is written."""

    __slots__ = ()


_DECODER = json.JSONDecoder(parse_int=_Integer, parse_float=_Fraction, parse_constant=_Fraction)


def _rows_in(text: memoryview) -> Iterator[dict[str, Any]]:
    """The objects of a text, with numbers as they are written. Raises InvalidInput."""
    content = bytes(text).decode("utf-8", "replace")
    at = _BEHIND_SPACE.match(content).end()  # type: ignore[union-attr] # it matches anything
    try:
        while at < len(content):
            row, at = _DECODER.raw_decode(content, at)
            at = _BEHIND_SPACE.match(content, at).end()  # type: ignore[union-attr]
            if not isinstance(row, dict):
                raise ValueError(f"{str(row)[:60]!r} is no object")
            yield row
    except RecursionError:
        raise InvalidInput("cannot be read as JSON lines: a value is nested too deeply") from None
    except ValueError as error:
        raise InvalidInput(f"cannot be read as JSON lines: {error}") from None


@dataclass(slots=True)
class _Column:
    """The values of a column in the beginning of a file, as far as they tell its type."""

    kinds: set[type]
    integers: list[str]
    words: list[str]

    def odd_word(self) -> str | None:
        """The first integer that int64 does not hold, where all numbers are integers."""
        if _Fraction in self.kinds:
            return None
        return next((word for word in self.integers if not -(1 << 63) <= int(word) < 1 << 63), None)

    def kind(self) -> Any:
        """The type of pyarrow; that of nulls where there is no value."""
        pyarrow = required("pyarrow", "tables")
        if self.kinds & {list, dict}:
            return pyarrow.list_(pyarrow.null())
        if str in self.kinds:
            return _instants(self.words) or pyarrow.string()
        if self.kinds & {_Integer, _Fraction}:
            return pyarrow.float64() if _Fraction in self.kinds or self.odd_word() is not None else pyarrow.int64()
        return pyarrow.bool_() if self.kinds else pyarrow.null()


def _columns_of(text: memoryview) -> dict[str, _Column]:
    """The columns in the beginning of a file, in the order in which they occur."""
    columns = dict[str, _Column]()
    for row in _rows_in(text):
        for name, value in row.items():
            if value is None:
                columns.setdefault(name, _Column(set(), [], []))
                continue
            column = columns.setdefault(name, _Column(set(), [], []))
            column.kinds.add(type(value))
            if type(value) is _Integer:
                column.integers.append(value)
            elif type(value) is str:
                column.words.append(value)
    return columns


def _instants(words: Sequence[str]) -> Any:
    """The type of timestamps that words are written as; None where one is none."""
    pyarrow = required("pyarrow", "tables")
    if not all(map(_DAY.match, words)):
        return None
    for unit in ("s", "ns"):
        try:
            pyarrow.array(words, pyarrow.string()).cast(pyarrow.timestamp(unit))
        except pyarrow.ArrowInvalid:
            continue
        return pyarrow.timestamp(unit)
    return None
