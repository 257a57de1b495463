"""The columns of a sheet: the first row has their names, and a first reading of all cells tells their types.

What CSV has in words, cells have in kinds: numbers, truth values, dates, durations and words. A column of one kind is
of that kind; one of several is words, as which it may be a key, and is not reduced. Words such as NA are nulls among
numbers, as in CSV, and an error such as #DIV/0! is refused by the name of its cell unless `null_words` has its text.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta
from functools import partial
from itertools import islice
from typing import Any, BinaryIO

from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.formats.dialect import Dialect, TextOptions
from warpfold.kernels.formats.row_filter import Condition, columns_of, expression
from warpfold.kernels.formats.xlsx import SheetCell, Workbook, Written
from warpfold.kernels.machine.extras import required

_BATCH_ROWS = 1 << 14
_USED = ("header", "null_words", "words", "sheet")
_KINDS = {bool: "truth values", int: "numbers", float: "numbers", str: "words"} | {
    datetime: "dates",
    date: "dates",
    time: "durations",
    timedelta: "durations",
}


@dataclass(slots=True)
class _Column:
    """What the cells of a column hold. `first` is the first cell that is no null, `other` the first of another kind
    than that, and `fault` the first that has no value."""

    name: str
    as_words: bool
    whole: bool = True
    midnights: bool = True
    first: SheetCell | None = None
    other: SheetCell | None = None
    fault: SheetCell | None = None

    def add(self, cell: SheetCell, dialect: Dialect) -> None:
        value = cell.value
        if isinstance(value, str) and value in dialect.nulls_of_numbers:
            return  # among words, it is one of them
        if value is None or cell.error:
            self.fault = self.fault or cell
            return
        self.first = self.first or cell
        if self.other is None and _KINDS[type(value)] != _KINDS[type(self.first.value)]:
            self.other = cell
        if isinstance(value, float):
            self.whole = False
        if isinstance(value, datetime) and value.time() != time():
            self.midnights = False

    @property
    def kind(self) -> str:
        """The kind of the cells; none where all are nulls."""
        if self.as_words or self.other is not None:
            return "words"
        return "" if self.first is None else _KINDS[type(self.first.value)]

    def type(self) -> Any:
        """The type of pyarrow."""
        pyarrow = required("pyarrow", "tables")
        return {
            "": pyarrow.null(),
            "truth values": pyarrow.bool_(),
            "numbers": pyarrow.int64() if self.whole else pyarrow.float64(),
            "dates": pyarrow.date32() if self.midnights else pyarrow.timestamp("ms"),
            "durations": pyarrow.duration("ms"),
            "words": pyarrow.string(),
        }[self.kind]

    def why_refused(self) -> str | None:
        """Why the column is not reduced, where a cell is the reason."""
        if self.fault is not None:
            return self.faulty(self.fault)
        if self.other is None or self.first is None or self.as_words:
            return None
        return (
            f"holds {str(self.other.value)[:60]!r} in cell {self.other.name} of column {self.name!r}, where cell "
            f"{self.first.name} holds {_KINDS[type(self.first.value)]}: `null_words` may name a word that is no value"
        )

    def faulty(self, cell: SheetCell) -> str:
        """Why a cell is refused that has no value."""
        if cell.error:
            return (
                f"holds the error {cell.value} in cell {cell.name} of column {self.name!r}: `null_words` may name it, "
                "and it is a null then"
            )
        return (
            f"holds a formula without its value in cell {cell.name} of column {self.name!r}: open the file in Excel or "
            "LibreOffice and save it, which stores the values"
        )


@dataclass(slots=True)
class Sheet:
    """The columns of a sheet of a workbook. `rows` is how many rows are behind the names, up to the last one that has
    a value."""

    book: Workbook
    dialect: Dialect
    columns: Mapping[int, _Column] = field(default_factory=dict)
    begin: int = 1
    rows: int = 0

    @classmethod
    def of(cls, file: BinaryIO, options: TextOptions) -> "Sheet":
        """Reads all cells once. Raises InvalidInput and Unavailable."""
        options.check_unused(_USED)
        book = Workbook(file)
        name = book.chosen(options.sheet)
        rows = (cells for cells in book.rows(name) if cells)
        head = next(rows, None)
        if head is None:
            raise InvalidInput(f"holds no cell in the sheet {name!r}")
        header = _has_names(head) if options.header is None else options.header
        dialect = Dialect(null_words=options.null_words, words=options.words, header=header, sheet=name)
        columns: dict[int, _Column] = {}
        last = begin = head[0].row + 1 if header else head[0].row
        if header:
            columns |= {cell.column: cls._column(cell.column, dialect, cell) for cell in head}
        for cells in rows if header else _again(head, rows):
            for cell in cells:
                if cell.column not in columns:
                    columns[cell.column] = cls._column(cell.column, dialect, None)
                columns[cell.column].add(cell, dialect)
            last = cells[0].row + 1
        return cls(book, dialect, dict(sorted(columns.items())), begin, last - begin)

    @staticmethod
    def _column(place: int, dialect: Dialect, name: SheetCell | None) -> _Column:
        if name is not None and name.value is None:
            raise InvalidInput(f"holds a formula without its value in cell {name.name}, which names a column", "header")
        called = f"column_{place}" if name is None else str(name.value)
        return _Column(called, called in dialect.words)

    @property
    def schema(self) -> Any:
        """The names and the types of the columns, as a schema of pyarrow."""
        return required("pyarrow", "tables").schema([(each.name, each.type()) for each in self.columns.values()])

    def why_refused(self, name: str) -> str | None:
        """Why a column is not reduced, where one of its cells is the reason."""
        return next((each.why_refused() for each in self.columns.values() if each.name == name), None)

    def check(self, names: Sequence[str]) -> None:
        """Raise InvalidInput where a cell of these columns has no value."""
        for column in self.columns.values():
            if column.name in names and column.fault is not None:
                raise InvalidInput(column.faulty(column.fault), "column")

    def batches(self, names: Sequence[str], rows: Condition | None = None) -> Iterator[Any]:
        """Record batches of the named columns, of the rows that fulfil a condition. Raises InvalidInput."""
        pyarrow = required("pyarrow", "tables")
        needed = {*names, *(set() if rows is None else columns_of(rows))}
        self.check([*needed])
        read = {place: column for place, column in self.columns.items() if column.name in needed}
        schema = pyarrow.schema([(column.name, column.type()) for column in read.values()])
        condition = None if rows is None else expression(rows, schema)
        lines = self._lines(tuple(read))
        left = self.rows
        while left:
            some = list(islice(lines, min(left, _BATCH_ROWS)))
            if not some:
                raise InvalidInput("changed while it was read")
            left -= len(some)
            arrays = [
                pyarrow.array(map(partial(_converted, column.kind, self._nulls(column)), cells), column.type())
                for column, cells in zip(read.values(), zip(*some, strict=True), strict=True)
            ]
            batch = pyarrow.record_batch(arrays, schema=schema)
            yield (batch if condition is None else batch.filter(condition)).select(list(names))

    def _nulls(self, column: _Column) -> frozenset[str]:
        words = column.kind == "words"
        return frozenset(self.dialect.nulls_of_words if words else self.dialect.nulls_of_numbers)

    def _lines(self, places: Sequence[int]) -> Iterator[list[Written | None]]:
        """The values in these columns of all rows, those without a cell among them."""
        row, empty = self.begin, list[Written | None]([None] * len(places))
        for cells in self.book.rows(self.dialect.sheet):
            if not cells or cells[0].row < self.begin:
                continue
            for _ in range(row, cells[0].row):
                yield empty
            values = {cell.column: cell.value for cell in cells}
            yield [values.get(place) for place in places]
            row = cells[0].row + 1


def _again(first: list[SheetCell], rows: Iterator[list[SheetCell]]) -> Iterator[list[SheetCell]]:
    yield first
    yield from rows


def _has_names(head: Sequence[SheetCell]) -> bool:
    """Whether the first row has names. Raises InvalidInput where it may have values."""
    odd = next((cell for cell in head if not isinstance(cell.value, str) or cell.error), None)
    if odd is not None:
        raise InvalidInput(
            f"holds {str(odd.value)[:60]} in cell {odd.name} of its first row: `header` says whether that row has the "
            "names of the columns",
            "header",
        )
    return True


def _converted(kind: str, nulls: frozenset[str], value: Written | None) -> Any:
    """A value as pyarrow takes it for a column of this kind; None for a null."""
    if value is None or (isinstance(value, str) and value in nulls):
        return None
    if kind == "words":
        return _as_word(value)
    if isinstance(value, time):
        midnight = datetime(1, 1, 1)
        return datetime.combine(midnight, value) - midnight
    return value


def _as_word(value: Written) -> str:
    if isinstance(value, bool):
        return str(value).upper()
    return value.isoformat() if isinstance(value, date | time) else str(value)
