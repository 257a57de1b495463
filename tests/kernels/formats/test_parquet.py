"""Row groups of Parquet: their order, their nulls, their memory, and footers that lie."""

import struct
from pathlib import Path
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.support.table_files import FORMATS, opened, refused, values
from warpfold.kernels.cpu.backend import CpuBackend
from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.formats import parquet
from warpfold.kernels.formats.dialect import TextOptions
from warpfold.kernels.formats.frames import open_frame
from warpfold.kernels.sources import sections
from warpfold.kernels.sources.sequential import SequentialSource, in_order


def test_nulls_of_parquet_are_counted_from_its_statistics_before_it_is_read(data_root: Path) -> None:
    FORMATS["x.parquet"](data_root / "x.parquet", pa.table({"x": [1, None, 3, 4, None]}), 2)
    assert opened(data_root, "x.parquet").count == 3
    FORMATS["plain.parquet"](data_root / "x.parquet", pa.table({"x": [1, None, 3, 4, None]}), 2)
    assert opened(data_root, "x.parquet").count is None
    assert "holds a null in 'x', at index 1" in refused(data_root, "x.parquet", null_policy="raise")


def test_row_groups_of_any_size_come_in_their_order(data_root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Several small ones are a section, which threads decode at once; large ones are decoded one after another."""
    numbers = list(range(1000))
    FORMATS["x.parquet"](data_root / "x.parquet", pa.table({"x": numbers}), 70)
    for most, rows in ((1, 1), (600, 70), (5000, 150), (1 << 20, 1 << 16)):
        monkeypatch.setattr(sections, "AHEAD_BYTES", most)
        monkeypatch.setattr(parquet, "AHEAD_BYTES", most)
        monkeypatch.setattr(parquet, "_BATCH_ROWS", rows)
        assert values(data_root, "x.parquet") == numbers
        for op, value in (("sum", sum(numbers)), ("argmax", 999), ("argmin", 0)):
            assert CpuBackend().reduce(opened(data_root, "x.parquet"), op).value == value
    want = {"op": ">", "column": "x", "value": 900}
    source = opened(data_root, "x.parquet", filter=want)
    assert isinstance(source, SequentialSource)
    assert source.likely == 1000 - 840  # the row groups below are not read


def test_sections_know_where_their_elements_are_beside_nulls(data_root: Path) -> None:
    FORMATS["x.parquet"](data_root / "x.parquet", pa.table({"x": [None, 1, None, 7, None, None, 9, 2]}), 2)
    source = opened(data_root, "x.parquet")
    assert isinstance(source, SequentialSource)
    assert source.sections is not None
    assert sum((section.count or 0) for section in source.sections()) == source.count == 4
    assert CpuBackend().reduce(source, "sum").value == 19
    assert (source.tally.elements, source.tally.nulls) == (4, 4)


def test_a_footer_that_counts_nulls_wrongly_is_refused(data_root: Path) -> None:
    pq.write_table(pa.table({"x": [1.0, None, 3.0]}), data_root / "x.parquet")
    written = (data_root / "x.parquet").read_bytes()
    count = written.rfind(b"\x16\x02", 0, -8)  # one null, as the statistics of the footer have it
    forged = [at for at in range(len(written)) if written.startswith(b"\x16\x02", at)]
    assert count in forged
    for at in forged:
        (data_root / "x.parquet").write_bytes(written[: at + 1] + b"\x04" + written[at + 2 :])
        try:
            source = opened(data_root, "x.parquet")
        except InvalidInput:
            continue
        if source.count == 1:
            with pytest.raises(
                InvalidInput, match=r"written by 'parquet-cpp-arrow .*contradicts its pages in column 'x'"
            ):
                CpuBackend().reduce(source, "sum")
            return
    pytest.fail("no byte of the footer is the number of nulls")


@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("compression", ["none", "snappy"])
def test_a_page_that_does_not_match_its_checksum_is_refused(
    data_root: Path, version: Literal["1.0", "2.0"], compression: str
) -> None:
    numbers = np.random.default_rng(7).standard_normal(5000)
    table = pa.table({"x": numbers, "k": np.arange(5000) % 3})
    path = data_root / "x.parquet"
    pq.write_table(
        table, path, write_page_checksum=True, data_page_version=version, compression=compression, use_dictionary=False
    )
    assert values(data_root, "x.parquet", column="x") == numbers.tolist()
    written = bytearray(path.read_bytes())
    written[20_000] ^= 1  # one bit of one element
    path.write_bytes(written)
    assert "checksum verification failed" in refused(data_root, "x.parquet", column="x")
    with path.open("rb") as file, pytest.raises(InvalidInput, match="checksum verification failed"):
        list(open_frame(file, None, TextOptions()).make(["x", "k"]))


def test_a_parquet_footer_that_claims_gigabytes_is_not_read(data_root: Path) -> None:
    (data_root / "x").write_bytes(b"PAR1" + bytes(100) + struct.pack("<I", 0xFFFFFFF0) + b"PAR1")
    assert "its footer claims 4,294,967,280 bytes" in refused(data_root, "x")


def test_a_row_group_larger_than_memory_allows_is_read_a_part_at_a_time(
    data_root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (parquet, sections):
        monkeypatch.setattr(module, "AHEAD_BYTES", 1 << 20)
    monkeypatch.setattr(parquet, "_BUFFER_BYTES", 1 << 16)
    table = pa.table({"x": np.random.default_rng(9).standard_normal(1 << 21)})  # 16 MiB
    pq.write_table(table, data_root / "x.parquet", row_group_size=1 << 21, compression="none", use_dictionary=False)
    want = int(table.num_rows)
    del table
    before, most, count = pa.total_allocated_bytes(), 0, 0
    for piece in in_order(opened(data_root, "x.parquet"), 1 << 17):
        most, count = max(most, pa.total_allocated_bytes() - before), count + piece.size
    assert count == want
    assert most < 8 << 20
