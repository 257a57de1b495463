"""Workbooks: what they hold, and what is refused of them before it takes memory."""

import io
import re
import zipfile
from pathlib import Path

import pytest

from tests.support.workbooks import edit, write_workbook
from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.formats.signature import Format, format_of, readable_format
from warpfold.kernels.formats.xlsx import Workbook, cell_name

MIB = 1 << 20


@pytest.mark.parametrize(
    ("row", "column", "name"), [(1, 1, "A1"), (7, 26, "Z7"), (7, 27, "AA7"), (1 << 20, 1 << 14, "XFD1048576")]
)
def test_cells_are_called_as_in_excel(row: int, column: int, name: str) -> None:
    assert cell_name(row, column) == name


def test_a_workbook_is_told_from_other_archives(tmp_path: Path) -> None:
    path = write_workbook(tmp_path / "x.xlsx", {"One": [[1]], "Two": []})
    with path.open("rb") as file:
        assert format_of(file) is Format.XLSX
        assert Workbook(file).sheets == ["One", "Two"]
    other = io.BytesIO()
    with zipfile.ZipFile(other, "w") as archive:
        archive.writestr("[Content_Types].xml", "<x/>")
    with pytest.raises(InvalidInput, match="cannot be read as a workbook"):
        Workbook(other)


@pytest.mark.parametrize(
    ("first", "message"),
    [
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(500), "is an .xls workbook, or one with a password"),
        (
            b"PK\x03\x04" + bytes(26) + b"mimetypeapplication/vnd.oasis.opendocument.spreadsheet",
            "is an OpenDocument file, which is not read: save the sheet as .xlsx or .csv",
        ),
    ],
)
def test_other_workbooks_are_refused_by_name(first: bytes, message: str) -> None:
    with pytest.raises(InvalidInput, match=re.escape(message)):
        readable_format(io.BytesIO(first))


@pytest.mark.parametrize(
    ("part", "most"), [("xl/sharedStrings.xml", 64 * MIB), ("xl/styles.xml", 16 * MIB), ("xl/workbook.xml", 16 * MIB)]
)
def test_a_part_that_is_read_whole_is_bounded(tmp_path: Path, part: str, most: int) -> None:
    path = write_workbook(tmp_path / "x.xlsx", {"S": [["x"], [1]]})
    edit(path, "</", " " * most + "</", part)
    assert path.stat().st_size < MIB
    with (
        path.open("rb") as file,
        pytest.raises(InvalidInput, match=f"bytes in '{part}', and at most {most:,} are read"),
    ):
        Workbook(file)


def test_a_row_is_bounded(tmp_path: Path) -> None:
    path = write_workbook(tmp_path / "x.xlsx", {"S": [["x"], [7]]})
    edit(path, "<v>7</v>", "<v>7</v></c>" + "<c><v>1</v></c>" * (17 * MIB // 15) + "<c><v>1</v>")
    assert path.stat().st_size < MIB
    with path.open("rb") as file:
        rows = Workbook(file).rows("S")
        assert [cell.value for cell in next(rows)] == ["x"]
        with pytest.raises(InvalidInput, match="has a row of more than 16 MiB of XML"):
            next(rows)


def test_cells_stand_where_a_sheet_of_excel_has_them(tmp_path: Path) -> None:
    path = write_workbook(tmp_path / "x.xlsx", {"S": [["x"], [7]]})
    edit(path, 'r="A2"', 'r="XFE2"')
    with path.open("rb") as file, pytest.raises(InvalidInput, match="has a cell in column 16,385 of at most 16,384"):
        list(Workbook(file).rows("S"))
