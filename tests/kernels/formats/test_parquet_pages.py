"""The heads of pages say how many rows are decoded at a time, and what is refused."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.formats import parquet_pages
from warpfold.kernels.formats.parquet_footer import Footer

ROWS = 1 << 16
COUNT = 4000


@pytest.fixture(scope="module")
def table() -> pa.Table:
    words = [f"word {n % 9}" for n in range(COUNT)]
    return pa.table({"x": np.arange(float(COUNT)), "short": words, "long": ["w" * 100_000] * COUNT})


def rows(table: pa.Table, path: Path, *columns: str, **how: Any) -> int:
    """How many rows of these columns are decoded at a time of the table as it is written."""
    pq.write_table(table, path, **how)
    with path.open("rb") as file:
        return Footer.of(file).rows_at_a_time([0], columns, ROWS)


@pytest.mark.parametrize("version", ["1.0", "2.0"])
def test_long_words_of_a_dictionary_come_few_at_a_time(table: pa.Table, tmp_path: Path, version: str) -> None:
    how = {"data_page_version": version, "compression": "zstd"}
    assert rows(table, tmp_path / "x.parquet", "x", "short", **how) == ROWS
    assert rows(table, tmp_path / "x.parquet", "x", "long", **how) == (1 << 26) // 100_000


@pytest.mark.parametrize("version", ["1.0", "2.0"])
def test_long_words_without_a_dictionary_come_few_at_a_time(table: pa.Table, tmp_path: Path, version: str) -> None:
    how = {"data_page_version": version, "use_dictionary": False}
    assert rows(table, tmp_path / "x.parquet", "short", **how) == ROWS
    assert 300 < rows(table, tmp_path / "x.parquet", "long", **how) <= (1 << 26) // 100_000


def test_words_that_repeat_the_ones_before_come_few_at_a_time(table: pa.Table, tmp_path: Path) -> None:
    how = {"use_dictionary": False, "column_encoding": {"long": "DELTA_BYTE_ARRAY"}}
    assert rows(table, tmp_path / "x.parquet", "long", **how) < COUNT


def test_a_page_that_becomes_more_than_its_column_has_is_refused(
    table: pa.Table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parquet_pages, "MOST_PAGE_BYTES", 10_000)
    for compression in ("zstd", "snappy", "gzip"):
        with pytest.raises(InvalidInput, match=r"a page in column 'x' that becomes 32,\d+ bytes, and 10,000 are read"):
            rows(table, tmp_path / "x.parquet", "x", use_dictionary=False, compression=compression)
    assert rows(table, tmp_path / "x.parquet", "x", use_dictionary=False, compression="none") == ROWS


def test_the_codecs_of_a_column_are_read_from_the_footer(table: pa.Table, tmp_path: Path) -> None:
    numbers = {"none": 0, "snappy": 1, "gzip": 2, "zstd": 6, "lz4": 7}
    for compression, number in numbers.items():
        pq.write_table(table, tmp_path / "x.parquet", compression={"x": compression}, row_group_size=1000)
        whole = (tmp_path / "x.parquet").read_bytes()
        footer = whole[-8 - int.from_bytes(whole[-8:-4], "little") : -8]
        assert parquet_pages.codecs_of(footer, "x", 4) == bytes([number] * 4)
        assert parquet_pages.codecs_of(footer, "x", 5) is None


def test_a_codec_that_nobody_knows_ends_no_process(table: pa.Table, tmp_path: Path) -> None:
    pq.write_table(table, tmp_path / "x.parquet", compression="snappy")
    whole = (tmp_path / "x.parquet").read_bytes()
    at = whole.rindex(b"\x19\x18\x01x\x15\x02")
    (tmp_path / "x.parquet").write_bytes(whole[: at + 5] + bytes([17 << 1]) + whole[at + 6 :])
    with (tmp_path / "x.parquet").open("rb") as file:
        assert Footer.of(file).rows_at_a_time([0], ["x"], ROWS) == ROWS
