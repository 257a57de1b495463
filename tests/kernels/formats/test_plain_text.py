"""Blocks of plain numbers, against pyarrow, whose values, nulls and errors they must have."""

from typing import Any

import pyarrow as pa
import pyarrow.csv as arrow_csv
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from warpfold.kernels.formats.dialect import NULL_WORDS, Dialect
from warpfold.kernels.formats.plain_text import TextLayout, plain_columns
from warpfold.kernels.formats.text_blocks import Lines
from warpfold.kernels.formats.text_types import TextColumns

DIALECT = Dialect(null_words=NULL_WORDS)
"""Nulls are the same in columns of numbers and of words, as pyarrow has it."""

TYPES = {"f": pa.float64(), "i": pa.int64()}
ALL = TYPES | {"t": pa.string()}


def words_of(words: bytes, name: str) -> Any:
    kind = ALL.get(name, pa.int64())
    parsing = arrow_csv.ParseOptions(ignore_empty_lines=False)
    try:
        table = arrow_csv.read_csv(
            pa.BufferReader(words), arrow_csv.ReadOptions(column_names=["x"]), parsing, converting({"x": kind})
        )
    except pa.ArrowInvalid:
        return None
    return table.column("x").combine_chunks()


def converting(types: dict[str, Any]) -> Any:
    return arrow_csv.ConvertOptions(
        column_types=types, include_columns=list(types), null_values=list(DIALECT.nulls_of_words),
        strings_can_be_null=True, quoted_strings_can_be_null=False,
    )  # fmt: skip


def by_arrow(lines: bytes, types: dict[str, Any]) -> Any:
    return arrow_csv.read_csv(pa.BufferReader(lines), None, None, converting(types))


def plain(lines: bytes, types: dict[str, Any], names: tuple[str, ...] = ("t", "f", "i")) -> Any:
    columns = plain_columns(
        Lines.of(memoryview(lines), DIALECT), TextLayout(names, DIALECT), TextColumns(types), headed=True
    )
    return None if columns is None else columns.table(words_of)


floats = st.one_of(
    st.floats().map(repr), st.integers(-(10**20), 10**20).map(str), st.decimals(allow_nan=False).map(str),
    st.sampled_from(["", "NA", "nan", "-inf", " 1.5", "1.5 ", "+2", "1.", ".5", "-0", "1e3", "1E400", "5e-324"]),
)  # fmt: skip
integers = st.one_of(st.integers(-(1 << 63), (1 << 63) - 1).map(str), st.sampled_from(["", "null", " 7", "007", "-0"]))
letters = st.text(st.characters(codec="utf-8", exclude_characters="\r\n"), max_size=12)
texts = st.one_of(
    letters.filter(lambda text: not set(text) & set(',"')),
    letters.map(lambda text: '"' + text.replace('"', '""') + '"'),
)


@settings(max_examples=150)
@given(st.lists(st.tuples(texts, floats, integers), max_size=30), st.sampled_from(["\n", "\r\n"]), st.booleans())
def test_a_block_has_the_values_and_nulls_of_pyarrow(rows: list[tuple[str, str, str]], end: str, ended: bool) -> None:
    lines = end.join(["t,f,i", *map(",".join, rows)]) + (end if ended or not rows else "")
    for types in (ALL, TYPES, {"t": pa.string()}, {"i": pa.int64()}, {"f": pa.float64()}):
        made = plain(lines.encode(), types)
        wanted = by_arrow(lines.encode(), types)
        if made is not None:
            assert made.schema == wanted.schema
            assert [list(map(repr, made.column(name).to_pylist())) for name in types] == [
                list(map(repr, wanted.column(name).to_pylist())) for name in types
            ]


def test_few_nulls_among_many_numbers_are_read_without_pyarrow() -> None:
    rows = [f"a,{number / 7!r},{number}" for number in range(500)]
    rows[7], rows[300] = "a,NA,", "b,,1"
    lines = "\n".join(["t,f,i", *rows, ""]).encode()
    made = plain(lines, ALL)
    assert made is not None
    assert made.equals(by_arrow(lines, ALL))
    assert [column.null_count for column in made.columns] == [2, 1, 0]


@pytest.mark.parametrize(
    "lines",
    [
        b'"t",f,i\r"a",1.5,2\n',
        b"t,f,i\na,1.5\n",
        b"t,f,i\na,1.5,2,3\n",
        b't,f,i\n"a"b,1.5,2\n',
        b't,f,i\na,"1.5",2\n',
        b"t,f,i\na,1.5,2\ra,1.5,2\n",
        b"t,f,i\na,north,2\n",
        b"t,f,i\na,1.5,2.5\n",
        b"\nt,f,i\na,1.5,2\n",
        b"t,f,i",
    ],
)
def test_other_blocks_are_left_to_pyarrow(lines: bytes) -> None:
    assert plain(lines, TYPES) is None


@pytest.mark.parametrize(
    "lines",
    [
        b'"t","f",i\r\n"a, or ""b""",1.5,2\r\n"",2.5,3\r\n',
        b't,f,i\n"a\nb",1.5,2\n"c\r\n""\n",2.5,3\n',
    ],
)
def test_words_in_quotes_are_read_with_their_quotes_and_line_ends(lines: bytes) -> None:
    for types in (TYPES, ALL):
        assert plain(lines, types).equals(by_arrow(lines, types))


def test_names_in_quotes_may_have_line_ends() -> None:
    names, types = ("t", "f", "i\na"), {"f": pa.float64(), "i\na": pa.int64()}
    for lines in (b't,f,"i\na"\na,1.5,2\n', b'"t",f,"i\na"\r\na,1.5,2\r\n'):
        made = plain(lines, types, names)
        assert made.to_pydict() == {"f": [1.5], "i\na": [2]}


def test_words_that_are_no_utf8_are_left_to_pyarrow() -> None:
    assert plain(b"t,f,i\n\xff,1.5,2\n", ALL) is None
    assert plain(b"t,f,i\n\xff,1.5,2\n", TYPES) is not None


def test_every_text_that_is_a_null_is_doubtful_as_a_word() -> None:
    for null in DIALECT.nulls_of_words:
        made = plain(f"t,f,i\n{null},1.5,2\n".encode(), ALL)
        assert made.column("t").to_pylist() == [None]


def test_other_types_and_columns_are_left_to_pyarrow() -> None:
    lines = b"t,f,i\na,1.5,2\n"
    assert plain(lines, TYPES) is not None
    for types in ({"t": pa.large_string()}, {"f": pa.float32()}, TYPES | {"t": pa.date32()}, {"other": pa.int64()}):
        assert plain(lines, types) is None
    assert plain(lines, TYPES, ("f", "f", "i")) is None
    for delimiter in (".", "5", "-", '"'):
        assert (
            plain_columns(
                Lines.of(memoryview(lines), DIALECT),
                TextLayout(("t", "f", "i"), Dialect(delimiter)),
                TextColumns(TYPES),
                headed=True,
            )
            is None
        )


@pytest.mark.parametrize(("headed", "values"), [(True, [5]), (False, [2, 5])])
def test_the_value_of_a_header_is_no_value(headed: bool, values: list[int]) -> None:
    layout, types = TextLayout(("1", "2", "3"), DIALECT), {"2": pa.int64()}
    for lines in (b"1,2,3\n4,5,6\n", b"1,2,3\n4,5,6"):
        columns = plain_columns(Lines.of(memoryview(lines), DIALECT), layout, TextColumns(types), headed=headed)
        assert columns is not None
        assert columns.table(words_of).column("2").to_pylist() == values
        numbers = columns.numbers()
        assert numbers is not None
        assert numbers.tolist() == values


@settings(max_examples=60)
@given(st.lists(floats, max_size=20), st.booleans())
def test_numbers_are_those_of_the_table_or_left_to_it(words: list[str], as_integers: bool) -> None:
    kind = pa.int64() if as_integers else pa.float64()
    if as_integers:
        words = [word for word in words if word.lstrip("-").isdigit() and abs(int(word)) < 1 << 63]
    lines = "".join(f"{word},a\n" for word in words).encode() + b"1,a\n"
    columns = plain_columns(
        Lines.of(memoryview(lines), DIALECT), TextLayout(("x", "t"), DIALECT), TextColumns({"x": kind}), headed=False
    )
    assert columns is not None or len(words) > 16
    numbers = None if columns is None else columns.numbers()
    if columns is not None and numbers is not None:
        assert columns.table(words_of).column("x").to_numpy().tobytes() == numbers.tobytes()
        assert numbers.dtype == kind.to_pandas_dtype()


@pytest.mark.parametrize("word", ["9007199254740992", "-9007199254740993", "1e300", "nan", "inf", "", "NA"])
def test_what_the_table_must_check_is_no_number(word: str) -> None:
    lines, types = memoryview(f"x,t\n1.5,a\n{word},a\n".encode()), {"x": pa.float64()}
    columns = plain_columns(Lines.of(lines, DIALECT), TextLayout(("x", "t"), DIALECT), TextColumns(types), headed=True)
    assert columns is not None
    assert columns.numbers() is None
    columns = plain_columns(
        Lines.of(memoryview(b"x,t\n9007199254740991,a\n"), DIALECT),
        TextLayout(("x", "t"), DIALECT),
        TextColumns(types),
        headed=True,
    )
    assert columns is not None
    assert columns.numbers() is not None


def test_an_empty_line_behind_the_names_is_a_null_of_a_single_column() -> None:
    """Programs that end lines twice write two carriage returns."""
    lines, types = b"x\r\r\n1.5\n", {"x": pa.float64()}
    assert plain(lines, types, ("x",)) is None
    made = plain(b"x\r\n\r\n1.5\n", types, ("x",))
    assert made is not None
    assert made.column("x").to_pylist() == [None, 1.5]
