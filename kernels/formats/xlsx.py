"""Workbooks of Excel (.xlsx): their sheets, and the cells of a sheet, read by openpyxl a row at a time.

A number in a cell is a decimal text that stands for the nearest float64, as in Excel: that float64 is the value, and
nothing of its format. A formula has the value that was stored with it. Dates count days, and are rounded to
milliseconds as openpyxl does. Merged and hidden cells are read as they are stored: of merged ones the first alone has a
value.

A workbook is a zip archive of XML. Its parts are bounded before they are unpacked, and so is what lies between two
rows, so that a few bytes do not become all of the memory. No more than a row of a sheet is held.
"""

import math
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from typing import Any, BinaryIO

from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.formats.naming import chosen_name, damaged
from warpfold.kernels.machine.extras import required

MOST_ROWS = 1 << 20
MOST_COLUMNS = 1 << 14
"""Excel's own limits."""

_MOST_PARTS = 10_000
_MOST_SHARED_BYTES = 1 << 26
"""The XML of texts that cells share, which are held in memory: a million or two."""
_MOST_OTHER_BYTES = 1 << 24
"""The XML of the workbook itself and of its styles."""
_MOST_BETWEEN_ROWS = 1 << 24
"""The XML of a row, of which a tree is made."""

_SHEET_NAMESPACE = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"

Written = bool | int | float | str | datetime | date | time | timedelta


@dataclass(frozen=True, slots=True)
class SheetCell:
    """A cell that is not empty. The value of an `error` is its text, such as #DIV/0!, and a formula whose value was not
    stored has None."""

    row: int
    column: int
    value: Written | None
    error: bool = False

    @property
    def name(self) -> str:
        """The name of the cell, such as B7."""
        return cell_name(self.row, self.column)


def cell_name(row: int, column: int) -> str:
    """The name of the cell in this row and this column, both counted from 1."""
    letters = ""
    while column:
        column, letter = divmod(column - 1, 26)
        letters = chr(ord("A") + letter) + letters
    return f"{letters}{row}"


class Workbook:
    """An open workbook; `file` must stay open while its cells are read. Raises InvalidInput and Unavailable."""

    def __init__(self, file: BinaryIO) -> None:
        excel = required("openpyxl.reader.excel", "tables")
        styles = required("openpyxl.styles.stylesheet", "tables")
        with damaged("cannot be read as a workbook", Exception):
            reader = excel.ExcelReader(file, read_only=True, data_only=True, keep_links=False)
            names = _bounded(reader.archive)
            if "xl/workbook.bin" in names:
                raise InvalidInput("is an .xlsb workbook, which is not read: save it as .xlsx")
            reader.read_manifest()
            reader.read_strings()
            reader.read_workbook()
            if "xl/styles.xml" in names:
                styles.apply_stylesheet(reader.archive, reader.wb)
            listed = [(str(sheet.name), relation) for sheet, relation in reader.parser.find_sheets()]
            self._paths = {
                name: str(relation.target)
                for name, relation in listed
                if "chartsheet" not in relation.Type and relation.target in names
            }
        self._reader = reader

    @property
    def sheets(self) -> Sequence[str]:
        """The names of the sheets of cells, in order."""
        return [*self._paths]

    def chosen(self, sheet: str | int | None) -> str:
        """The name of a sheet that is named or numbered, from 1; by default of the first. Raises InvalidInput."""
        if sheet is None or (isinstance(sheet, int) and 1 <= sheet <= len(self._paths)):
            if not self._paths:
                raise InvalidInput("holds no sheet of cells")
            return self.sheets[(sheet or 1) - 1]
        if isinstance(sheet, int):
            raise InvalidInput(f"holds {len(self._paths)} sheets, and none is number {sheet}", "sheet")
        return chosen_name(sheet, self.sheets, "a sheet", "sheet")

    def rows(self, sheet: str) -> Iterator[list[SheetCell]]:
        """The cells of each row of a sheet that are not empty, in order. Raises InvalidInput."""
        with damaged("is damaged", Exception), self._reader.archive.open(self._paths[sheet]) as stored:
            source = _Bounded(stored)
            parser, latest = _parser(source, self._reader.shared_strings), 0
            for element in _row_elements(source):
                number, cells = parser.parse_row(element)
                parser.row_dimensions.clear()
                source.begin()
                if not latest < number <= MOST_ROWS:
                    raise InvalidInput(f"has row {number:,} behind row {latest:,} of at most {MOST_ROWS:,}")
                latest = number
                yield [cell for each in cells if (cell := self._cell(number, each)) is not None]

    def _cell(self, row: int, parsed: dict[str, Any]) -> SheetCell | None:
        kind, value, column = parsed["data_type"], parsed["value"], int(parsed["column"])
        if not 1 <= column <= MOST_COLUMNS:
            raise InvalidInput(f"has a cell in column {column:,} of at most {MOST_COLUMNS:,}")
        if kind == _NO_VALUE:
            return SheetCell(row, column, None)
        if value is None or value == "":
            return None
        if kind == "n":
            style, number = int(parsed["style_id"]), _number(row, column, value)
            dated = style in self._reader.wb._date_formats
            value = self._moment(row, column, number, style) if dated else number
        return SheetCell(row, column, value, kind == "e")

    def _moment(self, row: int, column: int, value: float, style: int) -> datetime | time | timedelta:
        """A number that is shown as a date, a time or a duration. Raises InvalidInput."""
        from_excel = required("openpyxl.utils.datetime", "tables").from_excel
        book = self._reader.wb
        try:
            moment: datetime | time | timedelta
            moment = from_excel(value, book.epoch, timedelta=style in book._timedelta_formats)
        except (OverflowError, ValueError):
            raise InvalidInput(f"holds {value!r} in cell {cell_name(row, column)}, which is no date") from None
        return moment


_NO_VALUE = "formula"
_EXACT = 1 << 53
"""Up to here a float64 stands for one integer only."""


def _number(row: int, column: int, value: float) -> int | float:
    """A number as an integer where it is one that float64 holds exactly. Raises InvalidInput beyond float64."""
    try:
        wide = float(value)
    except OverflowError:
        wide = math.inf
    if not math.isfinite(wide):
        raise InvalidInput(f"holds a number beyond the range of float64 in cell {cell_name(row, column)}")
    is_minus_zero = wide == 0 and math.copysign(1, wide) < 0
    return int(wide) if wide.is_integer() and abs(wide) <= _EXACT and not is_minus_zero else wide


def _parser(source: Any, strings: Sequence[str]) -> Any:
    reader = required("openpyxl.worksheet._reader", "tables")

    class Parser(reader.WorkSheetParser):  # type: ignore[misc, name-defined]
        """Tells an empty cell from a formula whose value was not stored."""

        def parse_cell(self, element: Any) -> dict[str, Any]:
            cell: dict[str, Any] = super().parse_cell(element)
            if cell["value"] is None and cell["data_type"] != "str" and element.find(reader.FORMULA_TAG) is not None:
                cell["data_type"] = _NO_VALUE
            return cell

    # Dates are told from numbers here, because openpyxl warns of those that are none.
    return Parser(source, strings, data_only=True)


def _row_elements(source: Any) -> Iterator[Any]:
    """The elements of rows, each of which is forgotten when the next one is asked for."""
    iterparse = required("openpyxl.xml.functions", "tables").iterparse
    rows: Any = None
    for event, element in iterparse(source, events=("start", "end")):
        if event == "start":
            rows = element if element.tag == f"{_SHEET_NAMESPACE}sheetData" else rows
        elif element.tag == f"{_SHEET_NAMESPACE}row":
            yield element
            rows.clear()
        elif element.tag == f"{_SHEET_NAMESPACE}sheetData":
            return


class _Bounded:
    """A stream of XML of which no more than so many bytes are read between two calls of `begin`."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream
        self._read = 0

    def begin(self) -> None:
        """A row has been read."""
        self._read = 0

    def read(self, size: int = -1) -> bytes:
        data: bytes = self._stream.read(min(size, 1 << 16) if size > 0 else 1 << 16)
        self._read += len(data)
        if self._read > _MOST_BETWEEN_ROWS:
            raise InvalidInput(f"has a row of more than {_MOST_BETWEEN_ROWS >> 20} MiB of XML")
        return data


def _bounded(archive: zipfile.ZipFile) -> frozenset[str]:
    """The names of the parts of a workbook. Raises InvalidInput where one that is read as a whole is too large:
    zipfile gives no more than a part declares."""
    parts = archive.infolist()
    if len(parts) > _MOST_PARTS:
        raise InvalidInput(f"has {len(parts):,} parts, and at most {_MOST_PARTS:,} are read")
    for part in parts:
        if part.flag_bits & 1:
            raise InvalidInput("is encrypted, which is not read: save it without a password")
        most = _MOST_SHARED_BYTES if "sharedstrings" in part.filename.lower() else _MOST_OTHER_BYTES
        if part.file_size > most and not part.filename.startswith(("xl/worksheets/", "xl/media/", "xl/pivotCache/")):
            raise InvalidInput(
                f"has {part.file_size:,} bytes in {part.filename[:60]!r}, and at most {most:,} are read: save the "
                "sheet as CSV or Parquet"
            )
    return frozenset(part.filename for part in parts)
