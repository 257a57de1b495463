"""Columns of tables: every format against fractions, with nulls, filters and chunks of any size; hostile files."""

import gzip
import os
from fractions import Fraction
from math import copysign, isinf
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from tests.support.table_files import FORMATS, TABLE, arrow, opened, refused, values
from warpfold.contract.folders import Folders
from warpfold.contract.keyed import open_rows, plan_of
from warpfold.contract.kinds.groupby import GroupbySpec
from warpfold.kernels.cpu.backend import CpuBackend
from warpfold.kernels.dtypes import DTYPES
from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.exact.rounding import round_ratio
from warpfold.kernels.formats import text_blocks
from warpfold.kernels.sources.chained import ChainedSource
from warpfold.kernels.sources.sequential import SequentialSource, in_order

RARELY = settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.fixture(scope="module")
def cpu() -> CpuBackend:
    return CpuBackend()


NUMBERS = {
    "float64": st.floats(width=64, allow_nan=False, allow_infinity=False),
    "float32": st.floats(width=32, allow_nan=False, allow_infinity=False),
    "int64": st.integers(-(2**63), 2**63 - 1),
    "uint64": st.integers(0, 2**64 - 1),
    "int8": st.integers(-128, 127),
    "bool": st.booleans(),
}


@pytest.mark.parametrize("name", FORMATS)
@RARELY
@given(data=st.data())
def test_a_filtered_column_with_nulls_has_the_sum_of_its_fractions(
    data_root: Path, cpu: CpuBackend, name: str, data: st.DataObject
) -> None:
    dtype = data.draw(st.sampled_from(sorted(NUMBERS)))
    numbers = NUMBERS[dtype]
    if "sv" in name and dtype.startswith("float"):  # pyarrow writes larger ones as integers that are not their values
        numbers = numbers.filter(lambda number: abs(number) < 2.0 ** DTYPES[dtype].precision)
    rows = data.draw(st.lists(st.tuples(st.none() | numbers, st.none() | st.integers(0, 3)), min_size=1))
    column = pa.array([number for number, _ in rows], pa.type_for_alias(dtype))
    key = pa.array([key for _, key in rows], pa.int32())
    FORMATS[name](data_root / name, pa.table({"x": column, "k": key}), data.draw(st.integers(1, 9)))
    of_text = "sv" in name or name == "x.jsonl"
    given_dtype = {"dtype": dtype} if of_text else {}
    if of_text and set(key.to_pylist()) == {None}:
        return  # text whose key has no type
    for rows_wanted, kept in (
        (None, lambda key: True),
        ({"op": "==", "column": "k", "value": 1}, lambda key: key == 1),
        ({"op": "not", "of": {"op": "in", "column": "k", "values": [0, 2]}}, lambda key: key in (1, 3)),
        (
            {"op": "or", "of": [{"op": "is_null", "column": "k"}, {"op": ">=", "column": "k", "value": 2}]},
            lambda key: key is None or key >= 2,
        ),
    ):
        source = opened(data_root, name, column="x", filter=rows_wanted, **given_dtype)
        chosen = [number for number, key in rows if kept(key)]
        result = cpu.reduce(source, "sum")
        want = sum((Fraction(number) for number in chosen if number is not None), Fraction())
        assert result.value == (_rounded(want, dtype) if dtype.startswith("float") else want)
        assert result.count == sum(number is not None for number in chosen)
        nulls = source.tally.nulls if isinstance(source, SequentialSource) else 0
        assert nulls == len(chosen) - result.count


def _rounded(exact: Fraction, dtype: str) -> float:
    return round_ratio(exact.numerator, exact.denominator, 0, DTYPES[dtype])


@pytest.mark.parametrize("name", FORMATS)
def test_integers_at_the_edges_are_kept(data_root: Path, cpu: CpuBackend, name: str) -> None:
    for dtype, edges in (
        ("int64", [2**53 + 1, -(2**63), 2**63 - 1]),
        ("uint64", [2**64 - 1, 2**53 + 1, 0]),
    ):
        FORMATS[name](data_root / name, pa.table({"x": pa.array(edges, pa.type_for_alias(dtype))}), 2)
        given_dtype = {"dtype": dtype} if "sv" in name or name == "x.jsonl" else {}
        assert cpu.reduce(opened(data_root, name, **given_dtype), "sum").value == sum(edges)
        if not given_dtype or dtype == "int64":
            assert values(data_root, name) == edges


@pytest.mark.parametrize("name", ["x.parquet", "x.arrow", "x.arrows"])
@pytest.mark.parametrize("dtype", ["float16", "float32", "int16", "bool", "dictionary"])
def test_narrow_dtypes_and_dictionaries_are_read_as_they_are(data_root: Path, name: str, dtype: str) -> None:
    column = pa.array([1, 0, 1, 0, 0], pa.int64())
    if dtype == "dictionary":
        column = column.dictionary_encode()
    elif dtype == "float16":
        column = pa.array(np.array(column, np.float16))
    else:
        column = column.cast(pa.type_for_alias(dtype))
    FORMATS[name](data_root / name, pa.table({"x": column}), 2)
    assert values(data_root, name) == [1, 0, 1, 0, 0]
    assert opened(data_root, name).dtype.name == {"dictionary": "int64"}.get(dtype, dtype)


def test_an_uncompressed_arrow_column_is_read_at_its_place_in_the_file(data_root: Path, cpu: CpuBackend) -> None:
    numbers = np.random.default_rng(3).standard_normal(10_000)
    FORMATS["x.arrow"](data_root / "x.arrow", pa.table({"k": pa.array([1] * 10_000), "x": numbers}), 999)
    source = opened(data_root, "x.arrow", column="x")
    assert isinstance(source, ChainedSource)
    assert source.read(0, 10_000).tolist() == numbers.tolist()
    with (data_root / "x.arrow").open("r+b") as file:
        file.truncate(60_000)
    with pytest.raises(InvalidInput, match="record batch 3: the file became shorter while it was read"):
        cpu.reduce(source, "sum")


def test_blocks_of_text_end_where_lines_end(data_root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    numbers = [number / 8 for number in range(400)]
    for end in ("\n", "\r\n", "\r"):
        for nulls in ("", end):
            lines = [f"{number}" for number in numbers]
            (data_root / "x.csv").write_bytes(f"x{end}{end.join(lines)}{end}{nulls}".encode())
            (data_root / "xy.csv").write_bytes((f"y,x{end}" + "".join(f"1,{x}{end}" for x in lines)).encode())
            for size in (1, 7, 64, 1 << 21):
                monkeypatch.setattr(text_blocks, "_BLOCK_BYTES", size)
                assert values(data_root, "x.csv") == numbers
                assert values(data_root, "xy.csv", column="x") == numbers


def test_an_error_in_text_names_the_row_of_the_file(data_root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_blocks, "_FIRST_BYTES", 64)
    monkeypatch.setattr(text_blocks, "_BLOCK_BYTES", 40)
    rows = "".join(f"{number},{number}.5\n" for number in range(100))
    (data_root / "x.csv").write_text(f"y,x\n{rows}7,8,9\n{rows}")
    assert "Row #102: Expected 2 columns, got 3" in refused(data_root, "x.csv", column="x")


def test_a_line_without_end_is_refused(data_root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_blocks, "_BLOCK_BYTES", 1 << 10)
    monkeypatch.setattr(text_blocks, "_FIRST_BYTES", 1 << 12)
    (data_root / "x.csv").write_text("x\n1.5\n" + "0" * (1 << 14))
    assert "a line has more than 4,096 bytes" in refused(data_root, "x.csv")


def test_nan_is_a_number_and_no_null(data_root: Path) -> None:
    (data_root / "x.csv").write_text("x\n1.5\nnan\n\nNaN\nNA\n-inf\n+Infinity\n")
    source = opened(data_root, "x.csv")
    result = CpuBackend().reduce(source, "count_nonzero")
    assert isinstance(source, SequentialSource)
    assert (result.count, source.tally.nulls) == (5, 2)


@pytest.mark.parametrize(
    ("lines", "dtype", "message"),
    [
        (["18446744073709551615"], None, "which int64 does not hold"),
        (["18446744073709551615"], "float64", "an integer that float64 would round; `dtype` may name int64 or uint64"),
        (["0.5", "9007199254740993"], None, "holds 9007199254740993"),
        (["0.5", "9007199254740993"], "float64", "holds 9007199254740993"),
        (["0.5", "16777217"], "float32", "holds 16777217 in column 'x', an integer that float32 would round"),
        (["0.5", "inf", "1e400"], None, "holds 1e400 in column 'x', which is beyond the range of float64"),
        (["-" + "9" * 400, "0.5"], "float64", "which is beyond the range of float64"),
        (["inf", "-3.41e38"], "float32", "holds -3.41e38 in column 'x', which is beyond the range of float32"),
        (["1", "2.5"], "int64", "invalid value '2.5'"),
        (["300"], "uint8", "invalid value '300'"),
        (["-1"], "uint64", "invalid value '-1'"),
        (["1"], "float16", "is not read as float16"),
        (["", "NA"], None, "holds only nulls in the first block"),
    ],
)
def test_text_that_a_dtype_does_not_hold_is_refused(
    data_root: Path, lines: list[str], dtype: str | None, message: str
) -> None:
    (data_root / "x.csv").write_text("\n".join(["x,y", *(f"{line},1" for line in lines)]) + "\n")
    with pytest.raises(InvalidInput) as caught:
        values(data_root, "x.csv", column="x", dtype=dtype)
    assert message in str(caught.value)


WORDS = st.one_of(
    st.integers(-(10**25), 10**25).map(str),
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.builds("{}.{}e{}".format, st.integers(-9, 99), st.integers(0, 10**20), st.integers(-420, 420)),
    st.sampled_from(["inf", "-Infinity", "nan", "-0", "007", "1E39", "3.5e38", "16777217", "9007199254740993"]),
)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(words=st.lists(WORDS, min_size=1, max_size=4))
def test_any_number_in_text_is_the_nearest_float_or_refused(data_root: Path, dtype: str, words: list[str]) -> None:
    """No integer is another one, and no number is infinite unless it is written so."""

    def read(word: str) -> float | None:
        if not any(map(str.isdigit, word)):
            return float(word)
        value = _rounded(Fraction(word), dtype)
        rounded = word.lstrip("-").isdigit() and value != int(word)
        return None if isinf(value) or rounded else copysign(value, -1.0 if word.startswith("-") else 1.0)

    wanted = [read(word) for word in words]
    (data_root / "x.csv").write_text("\n".join(["x,y", "0.5,1", *(f"{word},1" for word in words)]) + "\n")
    if None in wanted:
        with pytest.raises(InvalidInput, match=r"would round|beyond the range"):
            values(data_root, "x.csv", column="x", dtype=dtype)
    else:
        assert list(map(repr, values(data_root, "x.csv", column="x", dtype=dtype)[1:])) == list(map(repr, wanted))


def test_a_later_block_never_changes_a_dtype(data_root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_blocks, "_FIRST_BYTES", 64)
    (data_root / "x.csv").write_text("x\n" + "7\n" * 100 + "0.5\n")
    assert "the first block told the dtype" in refused(data_root, "x.csv")
    (data_root / "x.csv").write_text("x,y\n" + "7,1\n" * 100 + "0\n")
    of_a_short_line = refused(data_root, "x.csv", column="x")
    assert "Expected 2 columns, got 1" in of_a_short_line
    assert "dtype" not in of_a_short_line
    (data_root / "x.csv").write_text("x\n" + "7\n" * 100 + "0.5\n")
    assert sum(values(data_root, "x.csv", dtype="float64")) == 700.5
    (data_root / "x.csv").write_text("x\n" + "0.5\n" * 100 + "9007199254740992\n9007199254740993\n")
    assert "holds 9007199254740993" in refused(data_root, "x.csv", "source.dtype")
    (data_root / "x.csv").write_text("x\n" + "0.5\n" * 100 + "9007199254740992\n1e300\n")
    assert max(values(data_root, "x.csv")) == 1e300


@pytest.mark.parametrize(
    ("column", "kind"),
    [
        ([b"a"], "binary"),
        (["a"], "string"),
        (pa.array([1], pa.time64("us")), "time64[us]"),
        ([[1, 2]], "list<"),
        ([{"a": 1}], "struct<a: int64>"),
        (pa.array(["a"]).dictionary_encode(), "dictionary<"),
    ],
)
def test_a_column_that_holds_no_numbers_is_refused_by_its_type(data_root: Path, column: Any, kind: str) -> None:
    pq.write_table(pa.table({"x": column}), data_root / "x.parquet")
    assert f"holds column 'x' as {kind}" in refused(data_root, "x.parquet", "source.column")


def test_a_column_that_is_not_there_is_told_with_near_names(data_root: Path) -> None:
    pq.write_table(pa.table({"price": [1], "amount": [2]}), data_root / "x.parquet")
    assert "did you mean 'price'?" in refused(data_root, "x.parquet", "source.column", column="prise")
    assert "'price', 'amount'" in refused(data_root, "x.parquet", "source.column")
    missing = {"op": "is_null", "column": "amounts"}
    assert "did you mean 'amount'?" in refused(data_root, "x.parquet", "source.filter", column="price", filter=missing)
    twice = pa.Table.from_arrays([pa.array([1]), pa.array([2])], ["x", "x"])
    arrow(pa.ipc.new_file)(data_root / "twice.arrow", twice, 1)
    assert "more than one column 'x'" in refused(data_root, "twice.arrow", "source.column", column="x")


def _nested(depth: int) -> dict[str, Any]:
    condition: dict[str, Any] = {"op": "is_null", "column": "x"}
    for _ in range(depth):
        condition = {"op": "not", "of": condition}
    return condition


@pytest.mark.parametrize(
    "options",
    [
        {"filter": {"op": "like", "column": "x", "value": "a"}},
        {"filter": {"op": "==", "column": "x"}},
        {"filter": {"op": "==", "column": "x", "value": [1]}},
        {"filter": {"op": "in", "column": "x", "values": []}},
        {"filter": {"op": "and", "of": []}},
        {"filter": _nested(16)},
        {"filter": {"op": "or", "of": [{"op": "or", "of": [_nested(0)] * 600}] * 2}},
        {"null_policy": "drop"},
        {"dtype": "decimal"},
        {"array": "x"},
    ],
)
def test_options_that_mean_nothing_are_refused_at_once(options: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        TABLE.validate_python({"type": "table", "path": "x", **options})


@pytest.mark.parametrize("name", ["x.parquet", "x.arrow", "x.feather", "x.arrows", "x.csv.gz", "x.tsv.zst", "x.jsonl"])
def test_a_damaged_or_truncated_table_is_refused(data_root: Path, name: str) -> None:
    FORMATS[name](data_root / name, pa.table({"x": np.random.default_rng(1).standard_normal(3000)}), 500)
    whole = (data_root / name).read_bytes()
    for content in (whole[: len(whole) // 2], whole[:20]):
        (data_root / name).write_bytes(content)
        refused(data_root, name)


@pytest.mark.parametrize("name", ["x.arrow", "x.arrows"])
@pytest.mark.parametrize("place", [1, 3])
def test_strings_that_lie_outside_of_an_arrow_file_are_refused(data_root: Path, name: str, place: int) -> None:
    """pyarrow would read memory there, which ends the process, or makes keys of it."""
    words = ["north", "south", "east"]
    FORMATS[name](data_root / name, pa.table({"w": pa.array(words), "x": [1.0, 2.0, 3.0]}), 500)
    offsets = np.array([0, 5, 10, 14], np.int32)
    content, wrong = (data_root / name).read_bytes(), offsets.copy()
    assert content.count(offsets.tobytes()) == 1
    wrong[place] = 1 << 30
    (data_root / name).write_bytes(content.replace(offsets.tobytes(), wrong.tobytes()))
    assert sum(values(data_root, name, column="x")) == 6.0
    refused(data_root, name, column="x", filter={"op": "==", "column": "w", "value": "north"})
    source = {"type": "table", "path": name}
    for rows in (None, {"op": "!=", "column": "w", "value": "east"}):
        spec = {"kind": "groupby", "by": ["w"], "aggregations": [{"op": "sum", "column": "x"}]}
        asked = GroupbySpec.model_validate({**spec, "source": {**source, "filter": rows}})
        with pytest.raises(InvalidInput, match="cannot be read to its end"):
            CpuBackend().group_by(open_rows(asked, Folders((data_root,), data_root)), plan_of(asked))


@pytest.mark.parametrize("name", ["x.parquet", "x.arrow", "x.arrows"])
def test_a_table_whose_column_has_a_name_of_no_text_is_refused(data_root: Path, name: str) -> None:
    FORMATS[name](data_root / name, pa.table({"key": [1, 2], "odd name": [1.0, 2.0]}), 500)
    content = (data_root / name).read_bytes()
    (data_root / name).write_bytes(content.replace(b"odd name", b"odd\xffname"))
    refused(data_root, name, column="key")
    spec = {"kind": "groupby", "by": ["key"], "aggregations": [{"op": "sum", "column": "key", "name": "sum"}]}
    asked = GroupbySpec.model_validate({**spec, "source": {"type": "table", "path": name}})
    with pytest.raises(InvalidInput, match="cannot be read as a table"):
        open_rows(asked, Folders((data_root,), data_root))


def test_a_bomb_of_text_is_decoded_in_bounded_memory(data_root: Path) -> None:
    (data_root / "x.csv.gz").write_bytes(gzip.compress(b"x\n" + b"1\n" * (1 << 22), 1))
    source = opened(data_root, "x.csv.gz")
    assert isinstance(source, SequentialSource)
    before = pa.total_allocated_bytes()
    assert sum(piece.size for piece in source.make() if pa.total_allocated_bytes() - before < 1 << 28) == 1 << 22
    (data_root / "line.csv.gz").write_bytes(gzip.compress(b"x\n" + b"1" * (1 << 24), 1))
    refused(data_root, "line.csv.gz")


@pytest.mark.parametrize("path", ["../secret.parquet", "link.parquet", "pipe", "none.parquet"])
def test_paths_are_held_to_the_data_roots(data_root: Path, path: str) -> None:
    pq.write_table(pa.table({"x": [1]}), data_root.parent / "secret.parquet")
    (data_root / "link.parquet").symlink_to(data_root.parent / "secret.parquet")
    os.mkfifo(data_root / "pipe")
    refused(data_root, path)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"\x89HDF\r\n\x1a\n" + bytes(99), "is not a table but HDF5"),
        (b"FEA1" + bytes(99), "is a Feather file of version 1"),
        (b"", "cannot be read as a table of text"),
        (b"PAR1", "is not a whole Parquet file"),
        (b"ARROW1\0\0" + bytes(99), "cannot be read as a table"),
    ],
)
def test_what_is_no_table_is_refused(data_root: Path, content: bytes, message: str) -> None:
    (data_root / "x").write_bytes(content)
    assert message in refused(data_root, "x")


def test_a_dtype_is_for_text_alone(data_root: Path) -> None:
    pq.write_table(pa.table({"x": [1]}), data_root / "x.parquet")
    assert "is not text" in refused(data_root, "x.parquet", "source.dtype", dtype="int8")


@pytest.mark.parametrize("name", ["x.parquet", "x.csv", "x.csv.gz"])
def test_a_table_that_changes_while_it_is_read_is_told(data_root: Path, name: str) -> None:
    FORMATS[name](data_root / name, pa.table({"x": np.arange(3000)}), 500)
    source = opened(data_root, name)
    pieces = in_order(source, 100)
    next(pieces)
    os.utime(data_root / name, (1, 1))
    with pytest.raises(InvalidInput, match=f"'{name}' changed while it was read") as caught:
        list(pieces)
    assert caught.value.field == "source.path"
