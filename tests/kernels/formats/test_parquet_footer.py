"""Footers of Parquet: nulls that are counted wrongly, orders that differ among writers, encrypted columns, footers
that end processes, paths that read alike, and timestamps of 96 bits."""

import base64
import struct
from collections.abc import Sequence
from datetime import datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pyarrow.parquet.encryption as pe
import pytest

from tests.support.table_files import opened, refused, values
from warpfold.kernels.cpu.backend import CpuBackend
from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.formats.contents import contents_of
from warpfold.kernels.formats.dialect import TextOptions
from warpfold.kernels.formats.frames import open_frame
from warpfold.kernels.formats.parquet_footer import Footer
from warpfold.kernels.formats.row_filter import Compared, Condition, IsIn, IsNull, Joined, Negated

EPOCH = datetime(1970, 1, 1)


def rows_of(path: Path, columns: Sequence[str], condition: Condition | None = None) -> list[dict[str, Any]]:
    """The rows as a reduction by key reads them."""
    with path.open("rb") as file:
        return [row for batch in open_frame(file, condition, TextOptions()).make(columns) for row in batch.to_pylist()]


def test_threads_that_decode_one_file_do_not_move_its_place(data_root: Path) -> None:
    """They share it: a thread that read from there would get the bytes that another one has asked for."""
    pq.write_table(pa.table({"x": [1.5, 2.5]}), data_root / "x.parquet", compression="zstd")
    with (data_root / "x.parquet").open("rb") as file:
        footer = Footer.of(file)
        file.seek(3)
        assert footer.rows_at_a_time([0], ["x"], 100) == 100
        assert file.tell() == 3


# Nulls


@pytest.mark.parametrize("page", [8, 512, 4096, 1 << 20])
@pytest.mark.parametrize("statistics", [True, "full", False])
@pytest.mark.parametrize("every", [2, 3, 50, 4000])
def test_nulls_that_polars_counts_for_every_page_lose_no_row(
    data_root: Path, page: int, statistics: Any, every: int
) -> None:
    count = 400 if page == 8 else 4000  # a page for each number takes the longest, and few of them are as many as many
    numbers = [None if row % every == 0 else row for row in range(count)]
    frame = pl.DataFrame({"x": pl.Series(numbers, dtype=pl.Int64), "one": [1] * count})
    groups = 3 * count // 8
    frame.write_parquet(data_root / "x.parquet", data_page_size=page, row_group_size=groups, statistics=statistics)
    present = [number for number in numbers if number is not None]
    assert values(data_root, "x.parquet", column="x") == present
    reduced = CpuBackend().reduce(opened(data_root, "x.parquet", column="x"), "sum")
    assert (reduced.value, reduced.count) == (sum(present), len(present))
    for op, kept in (("<", sum(number < 7 for number in present)), (">=", sum(number >= 7 for number in present))):
        condition = {"op": op, "column": "x", "value": 7}
        assert len(values(data_root, "x.parquet", column="one", filter=condition)) == kept
        assert len(rows_of(data_root / "x.parquet", ["one"], Compared("x", op, 7))) == kept
    missing = {"op": "is_null", "column": "x"}
    assert len(values(data_root, "x.parquet", column="one", filter=missing)) == count - len(present)
    assert len(values(data_root, "x.parquet", column="one", filter={"op": "not", "of": missing})) == len(present)
    with (data_root / "x.parquet").open("rb") as file:
        assert {content.name: content.nulls for content in contents_of(file, TextOptions())}["x"] in (
            None,
            count - len(present),
        )


def test_a_count_of_nulls_is_believed_where_nothing_speaks_against_it(data_root: Path) -> None:
    pq.write_table(pa.table({"x": [1, None, 3]}), data_root / "x.parquet")
    assert opened(data_root, "x.parquet").count == 2
    pl.DataFrame({"x": [1, 2, 3]}).write_parquet(data_root / "x.parquet")
    assert opened(data_root, "x.parquet").count == 3
    required = pa.schema([pa.field("x", pa.int64(), nullable=False)])
    pq.write_table(pa.table({"x": [1, 2, 3]}, required), data_root / "x.parquet", write_statistics=False)
    assert opened(data_root, "x.parquet").count == 3


# Orders

IN_GROUPS_OF_TWO: list[tuple[pa.Array, Condition, int]] = [
    (pa.array([1, 2, 3, 4, 5, 6]), Compared("x", ">", 4), 2),
    (pa.array([1, 2, 3, 4, 5, 6]), Compared("x", "<=", 2), 2),
    (pa.array([1, 2, 3, 4, 5, 6]), Compared("x", "==", 4), 2),
    (pa.array([1, 2, 3, 4, 5, 6]), IsIn("x", (1, 6)), 4),
    (pa.array([1, 2, 3, 4, 5, 6]), Joined(True, (Compared("x", ">", 2), Compared("x", "<", 5))), 2),
    (pa.array([1, 2, 3, 4, 5, 6]), Joined(False, (Compared("x", "<", 2), Compared("x", ">", 5))), 4),
    (pa.array([1, 2, 3, 4, 5, 6]), Negated(Compared("x", "<", 5)), 6),
    (pa.array([1, 2, 3, 4, 5, 6]), Compared("x", "!=", 1), 6),
    (pa.array([None, None, 3, 4, 5, None]), IsNull("x"), 6),
    (pa.array([None, None, 3, 4, 5, None]), Compared("x", ">", 4), 4),  # nothing is said of nulls alone
    (pa.array([1, 2, 2**63, 2**63 + 1, 2**64 - 2, 2**64 - 1], pa.uint64()), Compared("x", ">=", 2**64 - 2), 2),
    (pa.array([1, 2, 200, 201, 254, 255], pa.uint8()), Compared("x", "<", 100), 2),
    (pa.array([1.0, float("nan"), 3.0, 4.0, 5.0, 6.0]), Compared("x", ">", 4.5), 2),
    (pa.array([-0.0, -0.0, 0.0, 0.0, 5.0, 6.0]), IsIn("x", (0.0,)), 4),
    (pa.array([False, False, True, True, False, True]), Compared("x", "==", True), 4),
    (pa.array(list(map(Decimal, "123456"))), Compared("x", ">", "4"), 6),  # in bytes, whose order writers differ in
    (pa.array(["a", "b", "c", "d", "e", "f"]), Compared("x", "==", "d"), 2),
    (pa.array(["a", "b", "c", "d", "e", "f"]), Compared("x", "<", "c"), 2),
    (pa.array(["a", "b", "c", "d", "e", "f"]), Compared("x", ">", "d"), 6),
    (pa.array(["a", "b", "c", "d", "é", "ü"]), Compared("x", "==", "a"), 4),
    (pa.array(["a", "b", "c", "d", "e", "f"]), Compared("x", "==", "é"), 6),
    (pa.array(["a", "b", "c", "d", "e", "f"]).dictionary_encode(), Compared("x", "==", "d"), 2),
    (pa.array([EPOCH + timedelta(days) for days in range(6)]), Compared("x", ">", "1970-01-05"), 2),
    (pa.array([EPOCH + timedelta(days) for days in range(6)], pa.timestamp("ns")), Compared("x", "<", "1970-01-02"), 2),
    (pa.array([(EPOCH + timedelta(days)).date() for days in range(6)]), Compared("x", "==", "1970-01-06"), 2),
]


@pytest.mark.parametrize(("column", "condition", "read"), IN_GROUPS_OF_TWO)
def test_row_groups_are_left_out_only_where_bounds_of_a_sure_order_exclude_them(
    data_root: Path, column: pa.Array, condition: Condition, read: int
) -> None:
    table = pa.table({"x": column, "row": list(range(6))})
    pq.write_table(table, data_root / "x.parquet", row_group_size=2)
    with (data_root / "x.parquet").open("rb") as file:
        assert 2 * len(Footer.of(file).groups(condition)) == read
    with pa.OSFile(str(data_root / "x.arrow"), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
    assert rows_of(data_root / "x.parquet", ["row"], condition) == rows_of(data_root / "x.arrow", ["row"], condition)


def test_decimals_of_polars_whose_bounds_have_no_sign_lose_no_row(data_root: Path) -> None:
    numbers = [Decimal(text) for text in ("-5.0000", "7.0000", "-9.0000", "-1.0000", "3.0000", "9.0000")]
    frame = pl.DataFrame({"x": pl.Series(numbers, dtype=pl.Decimal(20, 4)), "one": [1] * 6})
    frame.write_parquet(data_root / "x.parquet", data_page_size=8, statistics="full")
    for number in numbers:
        condition = {"op": "==", "column": "x", "value": str(number)}
        assert values(data_root, "x.parquet", column="one", filter=condition) == [1]


# Encryption


class _Keys(pe.KmsClient):  # type: ignore[misc]
    """Keeps keys as they are."""

    def wrap_key(self, key_bytes: bytes, master_key_identifier: str) -> bytes:
        return base64.b64encode(key_bytes)

    def unwrap_key(self, wrapped_key: bytes, master_key_identifier: str) -> bytes:
        return base64.b64decode(wrapped_key)


def encrypt(path: Path, table: pa.Table, columns: Sequence[str], *, footer: bool) -> None:
    """Write a table whose `columns` are encrypted, and the footer as well or not."""
    keys = pe.EncryptionConfiguration("footer", column_keys={"column": list(columns)}, plaintext_footer=not footer)
    made = pe.CryptoFactory(lambda _: _Keys()).file_encryption_properties(pe.KmsConnectionConfig(), keys)
    with pq.ParquetWriter(path, table.schema, encryption_properties=made) as writer:
        writer.write_table(table, row_group_size=2)


@pytest.fixture
def table() -> pa.Table:
    parts = pa.array([{"a": 1}, {"a": 2}, {"a": 3}])
    return pa.table({"k": ["a", "a", "b"], "v": [3.0, 4.0, 5.0], "w": [1, 2, 3], "s": parts})


def test_a_file_that_is_encrypted_as_a_whole_is_refused(data_root: Path, table: pa.Table) -> None:
    encrypt(data_root / "x.parquet", table, ["v"], footer=True)
    for column in ("v", "w"):
        assert "encrypted as a whole" in refused(data_root, "x.parquet", column=column)
    with (data_root / "x.parquet").open("rb") as file, pytest.raises(InvalidInput, match="encrypted as a whole"):
        contents_of(file, TextOptions())


@pytest.mark.parametrize(
    "closed", [["v"], ["k"], ["w"], ["v", "w"], ["k", "v", "w"], ["s.a"], ["s.a", "v"], ["k", "s.a"]]
)
def test_an_encrypted_column_is_refused_by_name_and_all_others_are_reduced(
    data_root: Path, table: pa.Table, closed: list[str]
) -> None:
    path = data_root / "x.parquet"
    encrypt(path, table, closed, footer=False)
    for column in ("v", "w"):
        filtered = {"op": "==", "column": "k", "value": "a"}
        if column in closed:
            assert f"is encrypted in column {column!r}" in refused(data_root, "x.parquet", column=column)
        else:
            assert values(data_root, "x.parquet", column=column) == table[column].to_pylist()
        if column in closed or "k" in closed:
            assert "is encrypted in column" in refused(data_root, "x.parquet", column=column, filter=filtered)
            with pytest.raises(InvalidInput, match="is encrypted in column"):
                rows_of(path, ["k", column])
        else:
            assert len(values(data_root, "x.parquet", column=column, filter=filtered)) == 2
            assert rows_of(path, ["k", column]) == table.select(["k", column]).to_pylist()
    with path.open("rb") as file:
        sizes = {content.name: content.nbytes for content in contents_of(file, TextOptions())}
    assert {name for name, nbytes in sizes.items() if nbytes is None} == {name.partition(".")[0] for name in closed}


@pytest.mark.parametrize(
    ("sound", "wrong", "why"),
    [
        (b"\x19\x26\xc8\x01\x90\x03", b"\x19\x36\x02\x02\x90\x03", "Definition level histogram size mismatch"),
        (b"\x19\x18\x01x\x15\x02", b"\x19\x18\x01x\x15\x22", "Unsupported compression codec"),
    ],
)
def test_a_footer_that_ends_processes_is_refused_by_its_column_and_all_others_are_reduced(
    data_root: Path, sound: bytes, wrong: bytes, why: str
) -> None:
    path, rows = data_root / "x.parquet", {"x": [1.0, None, 3.0] * 100, "w": [1, 2, 3] * 100}
    pq.write_table(pa.table(rows), path, compression="snappy")
    written = path.read_bytes()
    at = written.rindex(sound) if b"x" in sound else written.index(sound)
    path.write_bytes(written[:at] + wrong + written[at + len(wrong) :])
    filtered = {"op": "==", "column": "x", "value": 1}
    for asked in ({"column": "x"}, {"column": "w", "filter": filtered}):
        assert f"has a footer that is wrong about column 'x': {why}" in refused(data_root, "x.parquet", **asked)
    assert values(data_root, "x.parquet", column="w") == rows["w"]
    with pytest.raises(InvalidInput, match="wrong about column 'x'"):
        rows_of(path, ["w", "x"])
    with path.open("rb") as file:
        assert {content.name: content.nbytes is None for content in contents_of(file, TextOptions())} == {
            "x": True,
            "w": False,
        }


# Paths


@pytest.mark.parametrize(
    ("name", "other"),
    [
        ("s.a", pa.array([{"a": 7}, {"a": None}, {"a": 9}])),
        ("s.a", pa.array([{"b": 0, "a": 7}, {"b": 0, "a": None}, {"b": 0, "a": 9}])),
        ("s.a.b", pa.array([{"a": {"b": 7}}, {"a": None}, {"a": {"b": 9}}])),
        ("s.list.element", pa.array([[7], None, [8, 9]])),
        ("s.key_value.value", pa.array([[("k", 7)], [], [("l", 9)]], pa.map_(pa.string(), pa.int64()))),
        (".s", pa.array([{"a": 7}, {"a": None}, {"a": 9}])),
        ("s.", pa.array([{"a": 7}, {"a": None}, {"a": 9}])),
        ("s.b", pa.array([{"a": 7}, {"a": None}, {"a": 9}])),
    ],
)
@pytest.mark.parametrize("first", [True, False])
def test_a_column_is_not_taken_for_a_part_of_another_whose_path_reads_alike(
    data_root: Path, name: str, other: pa.Array, first: bool
) -> None:
    columns = {"s": other, name: pa.array([1, None, 3])} if first else {name: pa.array([1, None, 3]), "s": other}
    pq.write_table(pa.table({**columns, "row": [0, 1, 2]}), data_root / "x.parquet", row_group_size=2)
    assert values(data_root, "x.parquet", column=name) == [1, 3]
    reduced = CpuBackend().reduce(opened(data_root, "x.parquet", column=name), "sum")
    assert (reduced.value, reduced.count) == (4, 2)
    filtered = {"op": ">", "column": name, "value": 2}
    assert values(data_root, "x.parquet", column="row", filter=filtered) == [2]
    assert rows_of(data_root / "x.parquet", [name], Compared(name, "<", 3)) == [{name: 1}]
    with (data_root / "x.parquet").open("rb") as file:
        assert {content.name: content.nulls for content in contents_of(file, TextOptions())}[name] in (1, None)


# Timestamps of 96 bits

YEAR = 31_556_952


@pytest.mark.parametrize(
    ("instants", "unit"),
    [
        ([datetime(2020, 1, 1), datetime(1969, 12, 31, 23, 59, 59, 999999)], "ns"),
        ([datetime(1678, 1, 1), datetime(2262, 4, 11, 23, 47, 16)], "ns"),
        ([datetime(2262, 4, 11, 23, 47, 16, 854775), None], "ns"),
        ([datetime(2262, 4, 11, 23, 47, 16, 854776), datetime(2020, 1, 1)], "us"),
        ([datetime(1677, 9, 21, 0, 12, 43), datetime(2020, 1, 1)], "us"),
        ([datetime(1000, 1, 1), datetime(9999, 12, 31)], "us"),
        ([datetime(1, 1, 1), datetime(9999, 12, 31, 23, 59, 59, 999999)], "us"),
        ([None, datetime(3000, 1, 1, 0, 0, 0, 1), None, datetime(2020, 1, 1)], "us"),
        ([None, None], "ns"),
    ],
)
def test_timestamps_of_96_bits_are_read_in_the_finest_unit_that_keeps_them(
    data_root: Path, instants: list[datetime | None], unit: str
) -> None:
    table = pa.table({"at": pa.array(instants, pa.timestamp("us")), "row": list(range(len(instants)))})
    pq.write_table(table, data_root / "x.parquet", use_deprecated_int96_timestamps=True, row_group_size=2)
    factor = 1000 if unit == "ns" else 1
    wanted = [(instant - EPOCH) // timedelta(microseconds=1) * factor for instant in instants if instant is not None]
    source = opened(data_root, "x.parquet", column="at")
    assert source.meaning is not None  # type: ignore[union-attr]
    assert source.meaning.name == f"timestamp[{unit}]"  # type: ignore[union-attr]
    assert values(data_root, "x.parquet", column="at") == wanted
    for row in rows_of(data_root / "x.parquet", ["at", "row"]):
        assert (None if row["at"] is None else row["at"].replace(tzinfo=None)) == instants[row["row"]]
    after = {"op": ">", "column": "at", "value": "2100-01-01"}
    late = [row for row, instant in enumerate(instants) if instant is not None and instant > datetime(2100, 1, 1)]
    assert values(data_root, "x.parquet", column="row", filter=after) == late
    assert [row["row"] for row in rows_of(data_root / "x.parquet", ["row"], Compared("at", ">", "2100-01-01"))] == late


@pytest.mark.parametrize(("years", "unit"), [(250_000, "us"), (300_000, "ms"), (5_000_000, "ms")])
def test_timestamps_of_96_bits_beyond_all_calendars_have_a_coarser_unit(data_root: Path, years: int, unit: str) -> None:
    table = pa.table({"at": pa.array([years * YEAR, 0, None], pa.timestamp("s"))})
    pq.write_table(table, data_root / "x.parquet", use_deprecated_int96_timestamps=True)
    factor = {"us": 10**6, "ms": 10**3}[unit]
    assert values(data_root, "x.parquet", column="at") == [years * YEAR * factor, 0]


@pytest.mark.parametrize("number", [-1, -999_999, -43_200_000_000, -86_399_999_999, -86_400_000_001, -(10**15) - 7])
@pytest.mark.parametrize(("unit", "factor"), [("us", 1000), ("ns", 1)])
def test_instants_before_1970_are_read_as_meant_where_their_time_of_day_is_negative(
    data_root: Path, number: int, unit: str, factor: int
) -> None:
    """As versions of Arrow before 23 wrote them."""
    day, meant = 86_400 * 10**9, number * factor
    table = pa.table({"at": pa.array([number, 0], pa.timestamp(unit))})
    options: dict[str, Any] = {"use_dictionary": False, "compression": "none", "store_schema": False}
    pq.write_table(table, data_root / "x.parquet", use_deprecated_int96_timestamps=True, **options)
    written = (data_root / "x.parquet").read_bytes()
    floor, toward_zero = meant // day, -(-meant // day)
    as_now, as_before = (struct.pack("<qI", meant - days * day, 2_440_588 + days) for days in (floor, toward_zero))
    assert written.count(as_now) == 1
    (data_root / "x.parquet").write_bytes(written.replace(as_now, as_before))
    assert values(data_root, "x.parquet", column="at") == [meant, 0]


def test_columns_of_timestamps_that_no_unit_keeps_are_refused(data_root: Path) -> None:
    table = pa.table({"x": pa.array([1], pa.timestamp("ns")), "y": pa.array([9000 * YEAR], pa.timestamp("s"))})
    pq.write_table(table, data_root / "x.parquet", use_deprecated_int96_timestamps=True)
    assert values(data_root, "x.parquet", column="x") == [1]
    assert values(data_root, "x.parquet", column="y") == [9000 * YEAR * 10**6]
    filtered = {"op": ">", "column": "y", "value": "2100-01-01"}
    assert "of which no unit keeps all" in refused(data_root, "x.parquet", column="x", filter=filtered)
    with pytest.raises(InvalidInput, match="96 bits in 'x' and 'y', of which no unit keeps all in 64 bits"):
        rows_of(data_root / "x.parquet", ["x"])


def test_other_columns_of_a_file_with_timestamps_of_96_bits_are_read(data_root: Path) -> None:
    at = pa.array([[datetime(1000, 1, 1)], [datetime(9999, 12, 31)]], pa.list_(pa.timestamp("us")))
    table = pa.table({"x": [1, 2], "many": at})
    pq.write_table(table, data_root / "x.parquet", use_deprecated_int96_timestamps=True)
    assert values(data_root, "x.parquet", column="x") == [1, 2]
    assert rows_of(data_root / "x.parquet", ["x"]) == [{"x": 1}, {"x": 2}]
    assert "holds column 'many' as list" in refused(data_root, "x.parquet", "source.column", column="many")
