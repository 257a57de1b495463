"""Chunks that are decoded here have the elements that the library reads, and none becomes more than it has."""

import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.formats import hdf5_chunks
from warpfold.kernels.formats.hdf5_chunks import FilteredChunks
from warpfold.kernels.formats.hyperslab import blocks

h5py: Any = pytest.importorskip("h5py")

FILTERS: list[dict[str, Any]] = [
    {"compression": "gzip"},
    {"compression": "gzip", "shuffle": True, "fletcher32": True},
    {"shuffle": True, "fletcher32": True},
    {"compression": "lzf", "shuffle": True},
    {"compression": "szip"},
    {"scaleoffset": 0, "compression": "gzip"},
]


@pytest.mark.parametrize("how", FILTERS, ids=lambda how: "-".join(map(str, how)))
@pytest.mark.parametrize("dtype", ["<f8", ">i4", "<u2"])
def test_every_block_is_what_the_library_reads(
    tmp_path: Path, how: dict[str, Any], dtype: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if dtype == "<f8" and "scaleoffset" in how:
        pytest.skip("it would round floats")
    if how.get("compression") == "szip" and not h5py.h5z.filter_avail(h5py.h5z.FILTER_SZIP):
        pytest.skip("this library has no szip")
    monkeypatch.setattr(hdf5_chunks, "_KEPT_BYTES", 500)
    array = np.random.default_rng(5).integers(0, 900, (11, 14, 5)).astype(dtype)
    with h5py.File(tmp_path / "x.h5", "w") as file:
        dataset = file.create_dataset("x", array.shape, dtype, chunks=(4, 5, 2), fillvalue=7, **how)
        dataset[:9] = array[:9]  # the last chunks are not there
        chunks = FilteredChunks(dataset, "x")
        for selected in (
            (slice(0, 11, 1), slice(0, 14, 1), slice(0, 5, 1)),
            (slice(1, 11, 3), slice(2, 13, 7), slice(1, 5, 1)),
            (slice(2, 3, 1), slice(0, 14, 6), slice(4, 5, 1)),
        ):
            for most in (7, 60, 1000):
                for block in blocks(selected, dataset.chunks, most):
                    assert chunks.read(block).tobytes() == dataset[block].tobytes()


@contextmanager
def written(path: Path, chunk: bytes, *deflates: int, mask: int = 0) -> Iterator[Any]:
    """A dataset with one chunk of 1,024 float64 that is stored as these bytes."""
    created = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    created.set_chunk((1024,))
    for level in deflates:
        created.set_deflate(level)
    with h5py.File(path, "w") as file:
        space = h5py.h5s.create_simple((1024,))
        dataset = h5py.h5d.create(file.id, b"x", h5py.h5t.NATIVE_DOUBLE, space, dcpl=created)
        dataset.write_direct_chunk((0,), chunk, mask)
        yield file["x"]


WHOLE = (slice(0, 1024, 1),)


@pytest.mark.parametrize("count", [8191, 8193, 1 << 20])
def test_a_chunk_of_another_size_than_it_declares_is_refused(tmp_path: Path, count: int) -> None:
    with written(tmp_path / "x.h5", zlib.compress(bytes(count)), 9) as dataset:
        chunks = FilteredChunks(dataset, "x")
        with pytest.raises(InvalidInput, match="declared"):
            chunks.read(WHOLE)


def test_a_chunk_that_did_not_pass_a_filter_is_taken_as_it_is(tmp_path: Path) -> None:
    array = np.arange(1024.0)
    with written(tmp_path / "x.h5", array.tobytes(), 9, mask=1) as dataset:
        assert FilteredChunks(dataset, "x").read(WHOLE).tolist() == array.tolist()


def test_what_is_packed_twice_is_refused(tmp_path: Path) -> None:
    with (
        written(tmp_path / "x.h5", b"x", 9, 9) as dataset,
        pytest.raises(InvalidInput, match="packed more than once"),
    ):
        FilteredChunks(dataset, "x")


def test_the_bytes_of_lzf_are_counted() -> None:
    literal, run = b"\x02abc", b"\xe0\xff\x00"  # three bytes as they are, and 264 bytes of before
    assert hdf5_chunks._lzf_bytes(literal + run + b"\x20\x00") == 3 + 264 + 3
