"""Codecs of Zarr: all that are taken give the elements that were written, and none more bytes than a chunk declares."""

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.support.array_files import elements, refused

numcodecs: Any = pytest.importorskip("numcodecs")
zarr: Any = pytest.importorskip("zarr")
codecs: Any = pytest.importorskip("zarr.codecs")

ARRAY = (np.random.default_rng(11).standard_normal((40, 30)) * 1000).round(3)
SECOND: list[dict[str, Any]] = [
    *({"compressor": numcodecs.get_codec({"id": name})} for name in ("gzip", "zlib", "bz2", "lzma", "zstd", "lz4")),
    {"compressor": numcodecs.Blosc(cname="zstd", shuffle=2)},
    {"compressor": numcodecs.Zlib(), "filters": [numcodecs.Shuffle(8)]},
    {"compressor": numcodecs.GZip(), "filters": [numcodecs.Zlib()]},
    {"compressor": numcodecs.Zlib(), "filters": [numcodecs.FixedScaleOffset(0, 1000, "<f8", "<i8")]},
]
THIRD: list[dict[str, Any]] = [
    {"compressors": codecs.GzipCodec()},
    {"compressors": codecs.ZstdCodec(checksum=True)},
    {"compressors": codecs.BloscCodec(cname="lz4")},
    {"compressors": [codecs.GzipCodec(), codecs.Crc32cCodec(), codecs.ZstdCodec()]},
    {"compressors": codecs.ZstdCodec(), "chunks": (4, 5), "shards": (16, 20)},
    {"compressors": None},
]


@pytest.mark.parametrize("number", range(len(SECOND)))
def test_codecs_of_version_2_give_what_was_written(data_root: Path, number: int) -> None:
    stored = zarr.create(
        shape=(40, 30), chunks=(16, 11), dtype="<f8", store=str(data_root / "z"), zarr_format=2, **SECOND[number]
    )
    stored[:] = ARRAY
    assert np.allclose(elements(data_root, "z"), ARRAY.ravel(), atol=1e-9)


@pytest.mark.parametrize("number", range(len(THIRD)))
def test_codecs_of_version_3_give_what_was_written(data_root: Path, number: int) -> None:
    how = {"chunks": (16, 11), **THIRD[number]}
    zarr.create_array(str(data_root / "z"), shape=(40, 30), dtype="<f8", **how)[:] = ARRAY
    assert elements(data_root, "z").tobytes() == ARRAY.tobytes()


@pytest.mark.parametrize("name", ["gzip", "zlib", "bz2", "lzma", "zstd", "lz4", "blosc"])
@pytest.mark.parametrize("filtered", [False, True])
def test_a_chunk_that_becomes_more_than_it_declares_is_refused(data_root: Path, name: str, filtered: bool) -> None:
    codec = numcodecs.get_codec({"id": name})
    packed = bytes(codec.encode(np.zeros(1 << 17)))
    described = {"zarr_format": 2, "shape": [1024], "chunks": [1024], "dtype": "<f8", "fill_value": 0.0, "order": "C"}
    chain = {"compressor": {"id": "gzip", "level": 1}, "filters": [codec.get_config()]}
    (data_root / "z").mkdir()
    described |= chain if filtered else {"compressor": codec.get_config(), "filters": None}
    (data_root / "z" / ".zarray").write_text(json.dumps(described))
    (data_root / "z" / "0").write_bytes(gzip.compress(packed) if filtered else packed)
    assert "are declared" in refused(data_root, "z")


def test_a_filter_of_words_is_refused(data_root: Path) -> None:
    zarr.create(shape=(8,), chunks=(8,), dtype="<f8", store=str(data_root / "z"), zarr_format=2)
    described = json.loads((data_root / "z" / ".zarray").read_text())
    described["filters"] = [{"id": "astype", "encode_dtype": "<U999999", "decode_dtype": "<f8"}]
    (data_root / "z" / ".zarray").write_text(json.dumps(described))
    assert "encoded by 'astype' of no numbers" in refused(data_root, "z")


def test_more_chunks_than_can_be_listed_are_refused(data_root: Path) -> None:
    zarr.create(shape=(1 << 30,), chunks=(1,), dtype="<f8", store=str(data_root / "z"), zarr_format=2)
    assert "is stored in 1,073,741,824 chunks along an axis" in refused(data_root, "z")
    zarr.create(shape=(1 << 62, 1 << 62), chunks=(1, 1), dtype="<f8", store=str(data_root / "y"), zarr_format=2)
    assert "elements, and at most" in refused(data_root, "y")
