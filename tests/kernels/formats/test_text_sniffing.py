"""Text in the dialects of the world: the right value, or a refusal that names the option to set."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import pytest

from warpfold.kernels.cpu.backend import CpuBackend
from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.formats import text_recoding
from warpfold.kernels.formats.dialect import Dialect, TextOptions
from warpfold.kernels.formats.frames import Wanted, keyed_frame, open_frame
from warpfold.kernels.formats.tables import ColumnWanted, open_column
from warpfold.kernels.formats.text_sniffing import HEAD_BYTES, sniffed
from warpfold.kernels.ops import OPS
from warpfold.kernels.parts.keyed import Aggregation, GroupPlan


@dataclass(frozen=True)
class Case:
    """A text whose column has the sum `right`, which pandas reads where it is told by `pandas` how the text is written.
    If the text is refused, the error names `option`, and with `options` it has that sum. `sniffs` is whether DuckDB's
    sniffer comes to the same sum."""

    text: str
    right: float
    pandas: dict[str, Any] = field(default_factory=dict)
    option: str = ""
    options: dict[str, Any] = field(default_factory=dict)
    column: str = "x"
    encoding: str = "utf-8"
    sniffs: bool = False


COMMAS = {"sep": ";", "decimal": ","}
POINTS = {"sep": ";", "decimal": ",", "thousands": "."}
NO_NAMES = {"header": None, "names": ["k", "x"]}
CASES = {
    "commas": Case("k,x\na,1.5\nb,2\n", 3.5, sniffs=True),
    "semicolons": Case("k;x\na;1.5\nb;2\n", 3.5, {"sep": ";"}, sniffs=True),
    "tabs": Case("k\tx\na\t1.5\nb\t2\n", 3.5, {"sep": "\t"}, sniffs=True),
    "bars": Case("k|x\na|1.5\nb|2\n", 3.5, {"sep": "|"}, sniffs=True),
    "colons": Case("k:x\na:1.5\nb:2\n", 3.5, {"sep": ":"}, "column", {"delimiter": ":"}),
    "a single column": Case("x\n1.5\n2\n", 3.5, sniffs=True),
    "decimal commas": Case("k;x\na;1,5\nb;2,25\n", 3.75, COMMAS),
    "decimal commas and tabs": Case("k\tx\na\t1,5\nb\t2,25\n", 3.75, COMMAS | {"sep": "\t"}),
    "decimal commas in quotes": Case('k,x\na,"1,5"\nb,"2,25"\n', 3.75, {"decimal": ","}),
    "exponents": Case("k;x\na;1,5e3\nb;-2,25E-1\n", 1499.775, COMMAS),
    "three digits and a comma": Case("k;x\na;1,234\nb;2,345\n", 3.579, COMMAS, "decimal", {"decimal": ","}),
    "three digits and groups": Case(
        "k;x\na;1,234\nb;2,345\n", 3579, {"sep": ";", "thousands": ","}, "decimal", {"decimal": "."}
    ),
    "three digits and a point": Case(
        "k;x\na;1.234\nb;2.345\n", 3.579, {"sep": ";"}, "decimal", {"decimal": "."}, sniffs=True
    ),
    "three digits and groups of points": Case("k;x\na;1.234\nb;2.345\n", 3579, POINTS, "decimal", {"thousands": "."}),
    "three digits among commas": Case("k,x\na,1.234\nb,2.345\n", 3.579, sniffs=True),
    "quoted three digits": Case('k,x\na,"1,234"\nb,2\n', 1236, {"thousands": ","}, "decimal", {"thousands": ","}),
    "thousands and points": Case('k,x\na,"1,234.5"\nb,2\n', 1236.5, {"thousands": ","}),
    "millions": Case('k,x\na,"1,234,567"\nb,"2,345"\n', 1236912, {"thousands": ","}),
    "thousands of points": Case("k;x\na;1.234,5\nb;2.345,25\n", 3579.75, POINTS),
    "thousands of spaces": Case("k;x\na;1 234,5\nb;2 345,25\n", 3579.75, POINTS | {"thousands": " "}),
    "thousands of hard spaces": Case("k;x\na;1\u202f234,5\nb;2\xa0345,25\n", 3579.75),
    "thousands of apostrophes": Case("k;x\na;1'234.5\nb;2'345\n", 3579.5, {"sep": ";", "thousands": "'"}),
    "another column has points": Case("t;x\n12.30;1.234\n13.45;2.345\n", 3579, POINTS, "decimal", {"decimal": ","}),
    "groups of other lengths": Case('k,x\na,"12,34"\nb,"1,23,456"\n', 0, option="`thousands`"),
    "Latin-1": Case("Straße;x\nÖ;1,5\nÄ;2\n", 3.5, COMMAS, "encoding", {"encoding": "latin-1"}, encoding="latin-1"),
    "CP1252": Case("k€;x\n“a”;1.5\nb;2\n", 3.5, {"sep": ";"}, "encoding", {"encoding": "cp1252"}, encoding="cp1252"),
    "words of Latin-1 beside the column": Case("k,x\nGröße,1.5\nb,2\n", 3.5, encoding="latin-1"),
    "UTF-8 with a mark": Case("k,x\na,1.5\nb,2\n", 3.5, encoding="utf-8-sig", sniffs=True),
    "UTF-16": Case("k,x\nä,1.5\nb,2\n", 3.5, encoding="utf-16"),
    "UTF-16 of Excel": Case("k\tx\r\nä\t1,5\r\nb\t2\r\n", 3.5, COMMAS | {"sep": "\t"}, encoding="utf-16"),
    "UTF-16 without a mark": Case(
        "k,x\na,1.5\nb,2\n", 3.5, {}, "encoding", {"encoding": "utf-16-be"}, encoding="utf-16-be"
    ),
    "comments above": Case("# a file, of x\n#\nk,x\na,1.5\nb,2\n", 3.5, {"comment": "#"}, sniffs=True),
    "comments between": Case("# of a tool\nk,x\na,1.5\n# half, 7\nb,2\n", 3.5, {"comment": "#"}),
    "comments below": Case(
        "k,x\na,1.5\n# half\nb,2\n", 3.5, {"comment": "#"}, "`comment`", {"comment": "#"}, sniffs=True
    ),
    "names behind a mark": Case("##format\n#k\tx\na\t1.5\nb\t2\n", 3.5, {"sep": "\t", "skiprows": 1}, sniffs=True),
    "a year among names": Case("k,x,2020\na,1.5,3\nb,2,4\n", 3.5, sniffs=True),
    "years alone": Case("2019,2020\n1,2\n3,4\n", 4, {}, "header", {"header": True}, "2019"),
    "no names": Case("a,1.5\nb,2\n", 3.5, NO_NAMES, "header", {"header": False}, "column_2"),
    "no names and numbers": Case("1,1.5\n2,2\n", 3.5, NO_NAMES, "header", {"header": False}, "column_2"),
    "no names and decimal commas": Case(
        "1,5;2,5\n3,5;4,5\n", 7, COMMAS | NO_NAMES, "delimiter", {"delimiter": ";", "header": False}, "column_2"
    ),
    "single quotes": Case("k,x\n'a,b',1.5\n'c',2\n", 3.5, {"quotechar": "'"}, sniffs=True),
    "quotes are letters": Case(
        'k,x\n"a,1.5\nb,2\n', 3.5, {"quoting": 3}, "begins with a quote", {"quote": ""}, sniffs=True
    ),
    "null words": Case(
        "k,x\na,1.5\nb,none\nc,2\n", 3.5, {"na_values": ["none"]}, "`null_words`", {"null_words": ("none",)}
    ),
    "carriage returns and blank lines": Case("k;x\r\na;1,5\r\n\r\nb;2\r\n", 3.5, COMMAS),
    "carriage returns alone": Case("k;x\ra;1,5\rb;2\r", 3.5, COMMAS),
    "an empty last cell": Case("k;x;\na;1,5;\nb;2;\n", 3.5, COMMAS),
    "line ends in quotes": Case('k;x\n"a\n;1";1,5\nb;2\n', 3.5, COMMAS),
    "rows of other lengths": Case("k;x\na;1,5\nb\n", 0, option="`delimiter`"),
}


def total(path: Path, column: str, **options: Any) -> float:
    """The sum of a column, and that of the same column as one group, read as a job reads them."""
    with path.open("rb") as file:
        value = CpuBackend().reduce(open_column(file, ColumnWanted(column, text=TextOptions(**options))), "sum").value
        frame = open_frame(file, None, TextOptions(**options))
        rows = keyed_frame(frame, [], [Wanted(column, column, "column")], refuse_nulls=False)
        groups = CpuBackend().group_by(rows, GroupPlan((Aggregation(OPS["sum"], 0, "x"),))).table()
    assert groups.column("x").to_pylist() == [value]
    return value


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_a_dialect_has_the_right_value_or_is_refused_by_the_option_that_decides(tmp_path: Path, case: Case) -> None:
    path = tmp_path / "x.csv"
    path.write_bytes(case.text.encode(case.encoding))
    if case.option:
        with pytest.raises(InvalidInput) as refused:
            total(path, case.column)
        assert refused.value.field == case.option or case.option in str(refused.value)
    if not case.option or case.options:
        assert total(path, case.column, **case.options) == case.right


@pytest.mark.parametrize("case", [case for case in CASES.values() if case.pandas or case.sniffs])
def test_pandas_and_duckdb_have_the_right_values_where_they_are_told_or_tell_the_dialect(
    tmp_path: Path, case: Case
) -> None:
    path = tmp_path / "x.csv"
    path.write_bytes(case.text.encode(case.encoding))
    frame = pd.read_csv(path, encoding=case.encoding, **case.pandas)
    assert frame[case.column if case.column in frame else "x"].sum() == case.right
    with duckdb.connect() as connection:
        try:
            sniffs = connection.read_csv(str(path)).sum(f'"{case.column}"').fetchone()
        except duckdb.Error:
            sniffs = None
    assert (sniffs == (case.right,)) is case.sniffs


@pytest.mark.parametrize(
    ("text", "dialect"),
    [
        (b"k;x\n1;1,5\n", Dialect(";", decimal=",")),
        (b"x\n5\n", Dialect()),
        (b"# of a tool\nk|x\n'a'|1\n", Dialect("|", comment="#", quote="'")),
        ("k\tx\n1.234,5\t2\n".encode("utf-16"), Dialect("\t", decimal=",", thousands=".", encoding="utf-16-le")),
        (b"day;x\n2026-01-02;1\n", Dialect(";")),
        (b"", Dialect()),
        (b"name\nhello, world\nhello\n", Dialect()),
        (b"k,list\na,1;2\nb,3;4\n", Dialect()),
    ],
)
def test_what_was_taken_is_said(text: bytes, dialect: Dialect) -> None:
    assert sniffed(lambda count: text[:count], TextOptions()).dialect == dialect


@pytest.mark.parametrize(
    ("text", "options", "option"),
    [
        (b"a;b,c\n1;2,3\n", {}, "delimiter"),
        (b"true\nfalse\n", {}, "header"),
        (b"2026-01-02,a\n2026-01-03,b\n", {}, "header"),
        (b"5\n", {}, "header"),
        (b"#a,b\n#c,d\n1,2\n", {}, "comment"),
        (b"x\n1\n", {"encoding": "utf-16"}, "encoding"),
        (b"\xff\xfex\0", {"encoding": "latin-1"}, "encoding"),
    ],
)
def test_what_is_not_certain_is_refused(text: bytes, options: dict[str, Any], option: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        sniffed(lambda count: text[:count], TextOptions(**options))
    assert refused.value.field == option


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        (b"k,x\na,1.5\n", True),
        (b'"k","x"\n1,1.5\n', True),  # as pyarrow writes
        (b'"k, or","x""y"\r\n1,1.5\r\n', True),
        (b'"k","x\ny"\n1,1.5\n', False),
        (b'"k","2019"\na,b\n', False),
        (b'"k","x"\na,"1,5"\n', False),
        (b"k;x\na;1,5\n", False),
    ],
)
def test_of_plain_text_only_the_beginning_is_looked_at(text: bytes, plain: bool) -> None:
    asked = []

    def read(count: int) -> bytes:
        asked.append(count)
        return text[:count]

    sniffed(read, TextOptions())
    assert (asked == [HEAD_BYTES]) is plain


@pytest.mark.parametrize("encoding", ["utf-16", "latin-1", "cp1252", "utf-8"])
def test_long_texts_are_recoded_in_parts_and_lose_their_comments(
    tmp_path: Path, encoding: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(text_recoding, "_READ_BYTES", 7)
    path, rows = tmp_path / "x.csv", 500
    words = [f"a\r\n# {row}" for row in range(rows)]
    lines = [f'ä;"a\r\n# {row}";{row},25\r\n' + "# ä\r\n" * (row % 3) for row in range(rows)]
    path.write_bytes(("# ö\r\nk;ü;x\r\n" + "".join(lines)).encode(encoding))
    needed = None if encoding == "utf-16" else encoding
    assert total(path, "x", encoding=needed) == sum(range(rows)) + rows / 4
    with path.open("rb") as file:
        cells = open_frame(file, None, TextOptions(encoding=needed)).make(["ü"])
        assert [cell for batch in cells for cell in batch.column(0).to_pylist()] == words


def test_bytes_that_are_not_of_the_encoding_are_refused(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_bytes(b"k;x\na;1\n\x81;2\n")
    with pytest.raises(InvalidInput, match="is not in cp1252, as its byte 0x81 shows"):
        total(tmp_path / "x.csv", "x", encoding="cp1252")


def test_integers_with_groups_are_not_rounded(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("k;x\na;9.007.199.254.740.993\nb;2\n")
    assert total(tmp_path / "x.csv", "x") == 9007199254740995
    (tmp_path / "x.csv").write_text("k;x\na;9.007.199.254.740.993\nb;0,5\n")
    with pytest.raises(InvalidInput, match="an integer that float64 would round"):
        total(tmp_path / "x.csv", "x")
