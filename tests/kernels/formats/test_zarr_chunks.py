"""Chunks of Zarr arrays that are not there: the result says how many, or they are refused."""

import zipfile
from pathlib import Path
from typing import Any

import pytest

from tests.support.array_files import opened, refused, zipped
from warpfold.kernels.cpu.backend import CpuBackend
from warpfold.kernels.sources.sequential import noticed

zarr: Any = pytest.importorskip("zarr")


def _written(path: Path, version: int = 3, fill: float | None = 7.0, **how: Any) -> Any:
    how = {"shape": (6, 4), "chunks": (2, 2), "dtype": "f8", **how}
    stored = zarr.create_array(path, zarr_format=version, fill_value=fill, **how)
    stored[:2] = 1.0
    return stored


def _sum(root: Path, name: str, **options: Any) -> tuple[Any, str | None]:
    source = opened(root, name, **options)
    return CpuBackend().reduce(source, "sum").value, noticed([source])


@pytest.mark.parametrize("version", [2, 3])
def test_the_result_says_how_many_chunks_are_absent(data_root: Path, version: int) -> None:
    _written(data_root / "x", version)
    assert _sum(data_root, "x") == (8 + 16 * 7, "4 of 6 chunks absent, read as fill value 7.0")


def test_chunks_that_are_all_there_need_no_word(data_root: Path) -> None:
    _written(data_root / "x")[:] = 1.0
    assert _sum(data_root, "x", missing_chunks="raise") == (24, None)


@pytest.mark.parametrize(
    ("select", "notice"),
    [
        ([{"stop": 2}], None),
        ([{"start": 1, "stop": 3}], "2 of 4 chunks absent, read as fill value 7.0"),
        ([{"step": 5}, 0], "1 of 2 chunks absent, read as fill value 7.0"),
        ([{"start": 3, "stop": 3}], None),
    ],
    ids=["a chunk that is there", "rows", "steps over a chunk", "no elements"],
)
@pytest.mark.parametrize("shards", [None, (4, 4)], ids=["files", "shards"])
def test_only_chunks_of_selected_elements_count(data_root: Path, shards: Any, select: Any, notice: str | None) -> None:
    _written(data_root / "x", shards=shards)
    assert _sum(data_root, "x", select=select)[1] == notice


@pytest.mark.parametrize("index", ["end", "start"])
def test_chunks_within_a_shard_and_whole_shards_count(data_root: Path, index: str) -> None:
    shards = {"shape": (8,), "index_location": index}
    stored = zarr.create_array(data_root / "x", shape=(20,), dtype="i4", fill_value=7, chunks=(2,), shards=shards)
    stored[:2], stored[18:] = 1, 1
    assert len([path for path in (data_root / "x" / "c").iterdir() if path.is_file()]) == 2
    assert _sum(data_root, "x") == (4 + 16 * 7, "8 of 10 chunks absent, read as fill value 7")


def test_an_array_in_a_hierarchy_and_in_an_archive_is_named(data_root: Path) -> None:
    group = zarr.open_group(data_root / "g", mode="w")
    stored = group.create_array("run/x", shape=(4,), chunks=(2,), dtype="i2", fill_value=0)
    stored[:2] = 1
    zipped(data_root / "g", data_root / "g.zip", compression=zipfile.ZIP_STORED)
    for name in ("g", "g.zip"):
        assert _sum(data_root, name) == (2, "1 of 2 chunks of 'run/x' absent, read as fill value 0")


def test_an_absent_chunk_without_a_fill_value_is_refused_by_its_name(data_root: Path) -> None:
    stored = _written(data_root / "x", 2, None)
    stored[:] = 2.0
    assert _sum(data_root, "x") == (48, None)
    (data_root / "x" / "1.1").unlink()
    message = refused(data_root, "x")
    assert "without its chunk '1.1', and no fill value says what was there" in message
    assert _sum(data_root, "x", select=[{"stop": 2}]) == (16, None)


@pytest.mark.parametrize("shards", [None, (4, 4)], ids=["files", "shards"])
def test_absent_chunks_are_refused_where_the_request_says_so(data_root: Path, shards: Any) -> None:
    _written(data_root / "x", shards=shards)
    assert "and missing_chunks is raise" in refused(data_root, "x", "source.missing_chunks", missing_chunks="raise")


def test_a_value_that_is_read_twice_counts_its_chunks_once(data_root: Path) -> None:
    _written(data_root / "x").attrs["scale_factor"] = 0.5
    source = opened(data_root, "x")
    assert CpuBackend().reduce(source, "var").value > 0
    assert noticed([source]) == "4 of 6 chunks absent, read as fill value 7.0"


def test_parts_of_complex_numbers_have_the_chunks_of_the_array(data_root: Path) -> None:
    stored = zarr.create_array(data_root / "x", shape=(4,), chunks=(2,), dtype="c16", fill_value=1j)
    stored[:2] = 1
    assert _sum(data_root, "x") == (2, "1 of 2 chunks absent, read as fill value 1j")


def test_a_damaged_index_of_a_shard_is_an_error(data_root: Path) -> None:
    _written(data_root / "x", shards=(6, 4))
    shard = data_root / "x" / "c" / "0" / "0"
    shard.write_bytes(shard.read_bytes()[-20:])
    assert "cannot be decoded" in refused(data_root, "x")
