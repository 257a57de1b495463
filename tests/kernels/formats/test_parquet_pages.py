"""The heads of pages say how many rows are decoded at a time, and what is refused."""

import re
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


@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("checksums", [True, False])
def test_a_head_that_most_writers_make_is_read_as_any_other(
    table: pa.Table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str, checksums: bool
) -> None:
    how = {"data_page_version": version, "write_page_checksum": checksums, "use_dictionary": ["short"]}
    pq.write_table(table.append_column("one", pa.array([1] * COUNT, pa.int32())), tmp_path / "x.parquet", **how)
    with (tmp_path / "x.parquet").open("rb") as file:
        metadata = pq.ParquetFile(file).metadata
        pages = parquet_pages.ColumnPages(file, metadata)

        def heads() -> list[Any]:
            chunks = [metadata.row_group(0).column(leaf) for leaf in range(metadata.num_columns)]
            return [list(pages._pages(chunk, 1 << 30)) for chunk in chunks]

        by_form = heads()
        monkeypatch.setattr(parquet_pages, "_PLAIN_HEAD", re.compile(rb"(?!)"))
        assert heads() == by_form
    assert [sum(page.values for page in column) for column in by_form] == [COUNT, COUNT + 9, COUNT, COUNT]
