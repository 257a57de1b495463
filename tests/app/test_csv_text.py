import pytest

from warpfold.app.csv_text import CsvText, cell, cells


@pytest.mark.parametrize(
    "text", ["=1+1", "+cmd|' /C calc'!A0", "-1+1", "@SUM(A1)", "\t=1", "-", "+", "=", "-x", "-1,5"]
)
def test_a_text_that_a_spreadsheet_would_compute_is_neutralised(text: str) -> None:
    assert cell(text) == f"'{text}"


@pytest.mark.parametrize(
    "value", ["-1", "-1.50", "+2e-7", "-0x1.8p+0", "-inf", "-PT1.5S", "a=b", "", " =1", -1.5, 7, None, "1-1"]
)
def test_numbers_durations_and_other_texts_stay_as_they_are(value: object) -> None:
    assert cell(value) == value


def test_names_are_neutralised_and_pieces_are_taken_once() -> None:
    text = CsvText(["=name", "n"])
    text.add(zip(cells(["@a", None]), cells([-1, 2]), strict=True))
    assert text.taken() == b"'=name,n\r\n'@a,-1\r\n,2\r\n"
    assert text.taken() == b""


def test_numbers_by_columns_are_written_as_rows_are() -> None:
    values = [1.5, -2.0, 1e-300, float("nan"), float("-inf")]
    hexes, counts = [value.hex() for value in values], [3, 0, 10**20, 1, 2]
    rows, columns = CsvText(["a"], begun=True), CsvText(["a"], begun=True)
    rows.add(zip(values, hexes, counts, strict=True))
    columns.add_numbers([map(repr, values), hexes, map(str, counts)])
    assert columns.taken() == rows.taken()
