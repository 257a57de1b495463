"""What columns of text hold, by their words."""

from pathlib import Path

import pyarrow as pa
import pytest

from warpfold.kernels.cpu.backend import CpuBackend
from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.formats import text_blocks
from warpfold.kernels.formats.dialect import TextOptions
from warpfold.kernels.formats.frames import Wanted, keyed_frame, open_frame
from warpfold.kernels.formats.row_filter import Compared, Condition, IsIn, IsNull, Joined, Negated
from warpfold.kernels.formats.tables import ColumnWanted, open_column
from warpfold.kernels.formats.text_types import key_integers
from warpfold.kernels.ops import OPS, NanPolicy
from warpfold.kernels.parts.keyed import Aggregation, GroupPlan


def written(folder: Path, *columns: list[str]) -> Path:
    """A file with the columns k and x, or x alone."""
    names = ["k", "x"][-len(columns) :]
    path = folder / "x.csv"
    path.write_text("\n".join([",".join(names), *map(",".join, zip(*columns, strict=True))]) + "\n")
    return path


def total(
    path: Path, dialect: TextOptions | None = None, *, dtype: str | None = None, rows: Condition | None = None
) -> str:
    """The sum of the column x as it is printed, with its dtype, the number of its elements and that of nulls."""
    with path.open("rb") as file:
        source = open_column(file, ColumnWanted("x", rows, dtype=dtype, text=dialect or TextOptions()))
        result = CpuBackend().reduce(source, "sum", nan_policy=NanPolicy.OMIT)
        return f"{result.value!r} {source.dtype.name} {result.count} {source.tally.nulls}"  # type: ignore[union-attr]


def groups(path: Path, dialect: TextOptions | None = None, rows: Condition | None = None) -> dict[object, object]:
    """The sums of the column x by the keys in the column k."""
    with path.open("rb") as file:
        frame = open_frame(file, rows, dialect or TextOptions())
        keyed = keyed_frame(frame, [Wanted("k", "k", "by.0")], [Wanted("x", "x", "aggregations.0")], refuse_nulls=False)
        table = CpuBackend().group_by(keyed, GroupPlan((Aggregation(OPS["sum"], 0, "x_sum"),))).table().to_pydict()
    return dict(zip(table["k"], table["x_sum"], strict=True))


@pytest.mark.parametrize(
    ("words", "value"),
    [
        (["1", "2", "-3"], "0 int64 3 0"),
        (["007", "08", "0"], "15 int64 3 0"),
        (["1", " 2", "3 "], "6 int64 3 0"),
        (["1", "NA", "", '"3"'], "4 int64 2 2"),
        (["1.5", "2", "3e2", "1E-2"], "303.51 float64 4 0"),
        ([".5", "5.", "+1.25"], "6.75 float64 3 0"),
        (["1.5", "nan", "NaN"], "1.5 float64 1 0"),
        (["1.5", "inf", "1"], "inf float64 3 0"),
        (["9223372036854775807", "-1"], "9223372036854775806 int64 2 0"),
        (["9007199254740993", "1", "1"], "9007199254740995 int64 3 0"),
        (["true", "false", "true"], "2 bool 3 0"),
    ],
)
def test_numbers_are_written_in_decimal_or_scientific_form(tmp_path: Path, words: list[str], value: str) -> None:
    assert total(written(tmp_path, ["a"] * len(words), words)) == value


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["0x10", "5"], "holds '0x10' in column 'x', which is no number"),
        (["5", " 0XfF"], "holds '0XfF' in column 'x', which is no number"),
        (["1_000", "5"], "holds '1_000' in column 'x', which is no number"),
        (['"1,000"', "5"], "holds '1,000' in column 'x', which is 1.000 or 1000, .*`decimal` says"),
        (["1d5", "5"], "holds '1d5' in column 'x', which is no number"),
        (["5", "five"], "holds 'five' in column 'x', which is no number"),
        (["1.5", "0x10"], "holds '0x10' in column 'x', which is no number"),
        (["1", '"NA"'], "holds 'NA' in column 'x', which is no number"),
        (["1", "2", "+5"], r"holds '\+5' in column 'x' of integers, which int64 does not hold"),
        (["1", "nan"], "holds 'nan' in column 'x' of integers"),
        (["1", "-inf", "2"], "holds '-inf' in column 'x' of integers"),
        (["1", "9223372036854775808"], "holds '9223372036854775808' in column 'x' of integers"),
        (["100000000000000000000", "1"], "holds '100000000000000000000' in column 'x' of integers"),
        (["1.5", "9007199254740993"], "an integer that float64 would round"),
    ],
)
def test_other_words_never_change_a_column_in_silence(tmp_path: Path, words: list[str], why: str) -> None:
    with pytest.raises(InvalidInput, match=why):
        total(written(tmp_path, ["a"] * len(words), words))


def test_a_word_that_would_make_floats_of_integers_is_read_as_the_request_says(tmp_path: Path) -> None:
    path = written(tmp_path, ["1", "2", "nan"])
    assert total(path, dtype="float64") == "3.0 float64 2 0"
    assert total(path, TextOptions(null_words=("nan",))) == "3 int64 2 1"
    path = written(tmp_path, ["a", "b", "a"], ["1", "2", "nan"])
    assert groups(path, TextOptions(null_words=("nan",))) == {"a": 1, "b": 2}
    with pytest.raises(InvalidInput, match="holds 'nan' in column 'x' of integers") as refused:
        groups(path)
    assert refused.value.field == "aggregations.0"


@pytest.mark.parametrize("word", ["0x10", "-0x10", " 0X10"])
def test_no_later_block_holds_a_hexadecimal_number(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, word: str) -> None:
    monkeypatch.setattr(text_blocks, "_FIRST_BYTES", 64)
    path = written(tmp_path, ["a"] * 41, [*["1"] * 40, word])
    for dtype in (None, "int64", "uint16"):
        with pytest.raises(InvalidInput, match=r"written in decimal or scientific form|invalid value '-0x10'"):
            total(path, dtype=dtype)


@pytest.mark.parametrize(
    ("keys", "wanted"),
    [
        (["1", "2", "1"], {1: 4, 2: 2}),
        (["-7", "0", "-7"], {-7: 4, 0: 2}),
        (["00501", "501", "00501"], {"00501": 4, "501": 2}),
        (["NA", "DE", "NA"], {"NA": 4, "DE": 2}),
        (["NULL", "null", "n/a"], {"NULL": 1, "null": 2, "n/a": 3}),
        (["1", "NA", "1"], {"1": 4, "NA": 2}),
        (["1", "1.0", "1"], {"1": 4, "1.0": 2}),
        (["0.10", "0.1", "0.10"], {"0.10": 4, "0.1": 2}),
        (["true", "TRUE", "1"], {"true": 1, "TRUE": 2, "1": 3}),
        (["0x10", "16", "16"], {"0x10": 1, "16": 5}),
        (["+5", "5", "5"], {"+5": 1, "5": 5}),
        (["-0", "0", "0"], {"-0": 1, "0": 5}),
        ([" 5", "5", "5 "], {" 5": 1, "5": 2, "5 ": 3}),
        (["2026-01-01", "2026-01-1", "2026-01-01"], {"2026-01-01": 4, "2026-01-1": 2}),
        (["nan", "NaN", "nan"], {"nan": 4, "NaN": 2}),
        (["9223372036854775808", "1", "1"], {"9223372036854775808": 1, "1": 5}),
        (["", "1", '""'], {"1": 2, "": 3}),
        (["", "1", "1"], {1: 5}),
        (['"00501"', "00501", '"501"'], {"00501": 3, "501": 3}),
    ],
)
def test_keys_are_words_unless_all_are_plain_integers(tmp_path: Path, keys: list[str], wanted: object) -> None:
    assert groups(written(tmp_path, keys, ["1", "2", "3"])) == wanted


@pytest.mark.parametrize("odd", ["00501", "+5", "-0", "0x10", "NA", "1.0", '"007"', " 7"])
@pytest.mark.parametrize("quoted", [False, True])
def test_a_later_key_that_is_no_plain_integer_is_refused_with_the_way_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, odd: str, quoted: bool
) -> None:
    monkeypatch.setattr(text_blocks, "_FIRST_BYTES", 64)
    keys = ["7"] * 40 + [odd] + (['"7"'] * 40 if quoted else [])  # numbers in quotes are left to pyarrow
    path = written(tmp_path, keys, ["1"] * len(keys))
    with pytest.raises(
        InvalidInput, match=r"holds the key .* beginning holds plain integers alone; `words` may name"
    ) as refused:
        groups(path)
    assert refused.value.field == "words"
    assert sum(groups(path, TextOptions(words=("k",))).values()) == len(keys)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("value", "kept"),
    [("00501", 1), ("501", 2), (501, 3), ("NA", 4), ("", 0)],
)
def test_a_filter_compares_words_with_words_and_numbers_with_numbers(
    tmp_path: Path, value: str | int, kept: int
) -> None:
    keys = ["00501", "501", "NA", ""] if value in ("NA", "") else ["00501", "501"]
    path = written(tmp_path, keys, ["1", "2", "4", "8"][: len(keys)])
    if not kept:
        with path.open("rb") as file:
            source = open_column(file, ColumnWanted("x", Compared("k", "==", value), text=TextOptions()))
            assert not [array for array in source.make() if array.size]  # type: ignore[union-attr]
        return
    for rows in (Compared("k", "==", value), IsIn("k", (value,)), Joined(True, (Compared("k", "==", value),))):
        assert total(path, rows=rows).startswith(f"{kept} int64")


def test_a_filter_says_what_a_column_of_integers_does_not_hold(tmp_path: Path) -> None:
    path = written(tmp_path, ["7", "8"], ["1", "2"])
    assert total(path, rows=Negated(Compared("k", "!=", "7"))) == "1 int64 1 0"
    for rows in (Compared("k", "<", "8"), Joined(True, (Compared("k", "==", "7"), Compared("k", ">", 5)))):
        with pytest.raises(InvalidInput, match="holds column 'k' as int64, which does not hold"):
            total(path, rows=rows)
    assert total(path, TextOptions(words=("k",)), rows=Compared("k", "<", "8")) == "1 int64 1 0"


@pytest.mark.parametrize(
    ("null_words", "value"),
    [
        (None, "12 int64 2 2"),
        (("-999",), None),
        (("-999", "NA"), "12 int64 2 2"),
        (("5", "NA"), "-992 int64 2 2"),
        ((), None),
    ],
)
def test_the_words_that_are_nulls_can_be_set(
    tmp_path: Path, null_words: tuple[str, ...] | None, value: str | None
) -> None:
    words = ["5", "7", "NA", ""] if null_words is None else ["5", "7", "NA", "-999"]
    path, dialect = written(tmp_path, ["a", "a", "NA", "b"], words), TextOptions(null_words=null_words)
    if value is None:
        with pytest.raises(InvalidInput, match="which is no number"):
            total(path, dialect)
        return
    assert total(path, dialect) == value
    assert ("NA" in groups(path, dialect)) == (null_words is None)
    if null_words is not None:
        assert total(path, dialect, rows=Negated(IsNull("k"))).endswith("2 1")


def test_plain_integers_are_written_as_str_writes_them() -> None:
    for words in (["1", "-2", "0"], ["1", None]):
        assert key_integers(pa.chunked_array([words])) is not None
    for word in ("01", "-0", "+1", " 1", "1.0", "0x1", "9223372036854775808", "a"):
        assert key_integers(pa.chunked_array([["1", word]])) is None
