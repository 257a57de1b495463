"""Columns of sheets: their types and values beside pandas, nulls, errors, formulas, and what is refused by its cell."""

from collections.abc import Sequence
from datetime import date, datetime, time, timedelta
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pytest

from tests.support.table_files import opened, refused, values
from tests.support.workbooks import edit, write_workbook
from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.formats.dialect import TextOptions
from warpfold.kernels.formats.xlsx_columns import Sheet
from warpfold.kernels.sources.sequential import SequentialSource

NOON = datetime(2024, 3, 1, 12, 0, 0, 250_000)
COLUMNS: dict[str, tuple[str, list[Any]]] = {
    "whole numbers": ("int64", [1, None, -(2**53), 3]),
    "fractions": ("double", [0.1, 1e300, 2.5, None, 1e-300]),
    "integers that a float64 does not hold": ("double", [2**53 + 1, 2**64, 1]),
    "truth values": ("bool", [True, None, False]),
    "days": ("date32[day]", [date(2024, 2, 29), None, date(1999, 12, 31)]),
    "instants": ("timestamp[ms]", [NOON, date(1900, 1, 31), date(1900, 3, 1)]),
    "durations": ("duration[ms]", [timedelta(hours=30, milliseconds=5), time(1, 2, 3)]),
    "words": ("string", ["north", "NA", "south", "x003C"]),
    "numbers with words that are nulls": ("int64", [7, "NA", "n/a", 8]),
    "rows without a cell": ("int64", [1, None, None, 2, None]),
    "nothing": ("null", [None, None]),
}


def sheet_of(path: Path, **options: Any) -> Sheet:
    return Sheet.of(BytesIO(path.read_bytes()), TextOptions(**options))


def cells(sheet: Sheet, name: str) -> list[Any]:
    return [value for batch in sheet.batches([name]) for value in batch.column(0).to_pylist()]


@pytest.mark.parametrize("what", COLUMNS)
def test_a_column_has_the_values_that_pandas_reads(tmp_path: Path, what: str) -> None:
    kind, written = COLUMNS[what]
    rows = [[what, "last"], *([value, None] for value in written[:-1]), [written[-1], "end"]]
    path = write_workbook(tmp_path / "x.xlsx", {"S": rows})
    sheet = sheet_of(path)
    assert str(sheet.schema.field(what).type) == kind
    assert sheet.rows == len(written)
    read = cells(sheet, what)
    theirs = pandas.read_excel(path, keep_default_na=kind != "string")[what]
    for mine, other in zip(read, theirs, strict=True):
        if mine is None:
            assert pandas.isna(other)
        elif isinstance(other, time):
            assert mine == timedelta(hours=other.hour, minutes=other.minute, seconds=other.second)
        elif isinstance(mine, date):
            assert pandas.Timestamp(mine) == pandas.Timestamp(other)
        else:
            assert mine == other


def test_numbers_are_the_float64_nearest_to_what_is_written(tmp_path: Path) -> None:
    path = write_workbook(tmp_path / "x.xlsx", {"S": [["x"], [11], [12], [13]]})
    for old, new in (("11", "0.1000000000000000055511151231257827"), ("12", "9007199254740993"), ("13", "-0.0")):
        edit(path, f"<v>{old}</v>", f"<v>{new}</v>")
    source = opened(tmp_path, "x.xlsx")
    assert isinstance(source, SequentialSource)
    [read] = source.make()
    assert read.tolist() == [0.1, 2.0**53, 0.0]
    assert np.signbit(read[2])
    edit(path, "<v>9007199254740993</v>", "<v>1e999</v>")
    assert "holds a number beyond the range of float64 in cell A3" in refused(tmp_path, "x.xlsx")


def test_a_filter_nulls_and_the_sheet_are_those_of_the_request(tmp_path: Path) -> None:
    rows: list[list[Any]] = [["k", "x"], ["a", 1], ["b", 2.5], ["a", None], ["a", "?"]]
    write_workbook(tmp_path / "x.xlsx", {"First": [["y"], [5]], "Second": rows})
    options: dict[str, Any] = {"column": "x", "sheet": "Second", "null_words": ["?"]}
    assert values(tmp_path, "x.xlsx", **options) == [1.0, 2.5]
    of_a = {"op": "==", "column": "k", "value": "a"}
    assert values(tmp_path, "x.xlsx", **options, filter=of_a) == [1.0]
    assert values(tmp_path, "x.xlsx", **{**options, "sheet": 2}) == [1.0, 2.5]
    assert values(tmp_path, "x.xlsx") == [5]
    source = opened(tmp_path, "x.xlsx")
    assert isinstance(source, SequentialSource)
    assert source.tally.dialects[0].sheet == "First"
    assert "holds a null in 'x', at index 2" in refused(tmp_path, "x.xlsx", **options, null_policy="raise")


def test_formulas_have_the_values_that_are_stored_with_them(tmp_path: Path) -> None:
    rows = [["x", "word"], ["=1/2", "=A1"], [2, "=B9"]]
    path = tmp_path / "x.xlsx"
    write_workbook(path, {"S": rows}, {"=1/2": "<v>0.5</v>"})
    assert values(tmp_path, "x.xlsx", column="x") == [0.5, 2.0]
    message = refused(tmp_path, "x.xlsx", "source.column", column="word")
    assert "holds a formula without its value in cell B2 of column 'word': open the file in Excel or" in message


@pytest.mark.parametrize(
    ("rows", "options", "field", "message"),
    [
        (
            [["x"], [1], ["#DIV/0!"]],
            {},
            "column",
            "the error #DIV/0! in cell A3 of column 'x': `null_words` may name it",
        ),
        ([["x"], [1], ["one"]], {}, "column", "holds 'one' in cell A3 of column 'x', where cell A2 holds numbers"),
        ([["x"], [1], [True]], {}, "column", "holds 'True' in cell A3 of column 'x', where cell A2 holds numbers"),
        ([["x", 2], [1, 3]], {"column": "x"}, "header", "holds 2 in cell B1 of its first row: `header` says whether"),
        ([["x"], [1]], {"sheet": "Other"}, "sheet", "holds no sheet 'Other'; it holds 'S'"),
        ([["x"], [1]], {"sheet": 2}, "sheet", "holds 1 sheets, and none is number 2"),
        ([["x"], [1]], {"delimiter": ";"}, "delimiter", "is not text, which `delimiter` is for"),
        ([["x"], [1]], {"dtype": "float32"}, "dtype", "is not text: its columns have dtypes already"),
        ([["x", "x"], [1, 2]], {"column": "x"}, "column", "holds more than one column 'x'"),
        ([["x"], ["a"]], {}, "column", "holds column 'x' as string, which is not reduced here"),
        ([], {}, "path", "holds no cell in the sheet 'S'"),
    ],
)
def test_what_is_no_column_of_numbers_is_refused_by_its_cell(
    tmp_path: Path, rows: Sequence[Sequence[Any]], options: dict[str, Any], field: str, message: str
) -> None:
    write_workbook(tmp_path / "x.xlsx", {"S": rows})
    assert message in refused(tmp_path, "x.xlsx", f"source.{field}", **options)


def test_an_error_is_a_null_where_the_request_says_so(tmp_path: Path) -> None:
    write_workbook(tmp_path / "x.xlsx", {"S": [["x"], [1], ["#DIV/0!"], ["#N/A"]]})
    assert values(tmp_path, "x.xlsx", null_words=["#DIV/0!", "#N/A"]) == [1]


def test_columns_without_names_are_called_by_their_places(tmp_path: Path) -> None:
    path = write_workbook(tmp_path / "x.xlsx", {"S": [[1, None, 2], [3, 4, 5]]})
    assert sheet_of(path, header=False).schema.names == ["column_1", "column_2", "column_3"]
    assert cells(sheet_of(path, header=False), "column_2") == [None, 4]
    named = sheet_of(path, header=True)
    assert named.schema.names == ["1", "column_2", "2"]
    assert cells(named, "column_2") == [4]


def test_keys_may_be_words_that_are_written_as_numbers(tmp_path: Path) -> None:
    rows: list[list[Any]] = [["k"], [1], ["a"], [2.5], [NOON], [True]]
    path = write_workbook(tmp_path / "x.xlsx", {"S": rows})
    assert cells(sheet_of(path), "k") == ["1", "a", "2.5", "2024-03-01T12:00:00.250000", "TRUE"]
    assert cells(sheet_of(write_workbook(path, {"S": [["k"], [1]]}), words=("k",)), "k") == ["1"]


def test_other_files_have_no_sheets(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("x\n1\n")
    assert "is no .xlsx workbook, which `sheet` is for" in refused(tmp_path, "x.csv", "source.sheet", sheet=1)
    (tmp_path / "x.jsonl").write_text('{"x": 1}\n')
    assert "is no .xlsx workbook, which `sheet` is for" in refused(tmp_path, "x.jsonl", "source.sheet", sheet=1)


def test_merged_and_hidden_cells_are_read_as_they_are_stored(tmp_path: Path) -> None:
    path = write_workbook(tmp_path / "x.xlsx", {"S": [["x"], [1], [None], [3]]})
    edit(path, "</sheetData>", '</sheetData><mergeCells count="1"><mergeCell ref="A2:A3" /></mergeCells>')
    edit(path, '<row r="4">', '<row r="4" hidden="1">')
    assert cells(sheet_of(path), "x") == [1, None, 3]


def test_a_file_that_is_damaged_is_refused(tmp_path: Path) -> None:
    path = write_workbook(tmp_path / "x.xlsx", {"S": [["x"], *([number] for number in range(50))]})
    edit(path, '<row r="30">', '<row r="3">')
    with pytest.raises(InvalidInput, match="has row 3 behind row 29 of at most 1,048,576"):
        sheet_of(path)
    edit(path, "<sheetData>", "<sheetData><")
    with pytest.raises(InvalidInput, match="is damaged"):
        sheet_of(path)
