"""Every codec gives what was packed, and no more than it may."""

import bz2
import gzip
import lzma
import zlib
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.formats.bounded import decoded_within, inflated

numcodecs: Any = pytest.importorskip("numcodecs")

DATA = np.random.default_rng(3).integers(0, 4, 10_000).astype(np.uint8).tobytes()
CODECS: list[dict[str, Any]] = [
    {"id": "gzip"},
    {"id": "zlib"},
    {"id": "bz2"},
    {"id": "lzma"},
    {"id": "lzma", "format": lzma.FORMAT_RAW, "filters": [{"id": lzma.FILTER_LZMA2, "dict_size": 1 << 16}]},
    {"id": "zstd"},
    {"id": "lz4"},
    {"id": "blosc", "cname": "zlib"},
]


@pytest.mark.parametrize("config", CODECS, ids=lambda config: "-".join(map(str, config.values()))[:20])
def test_a_codec_gives_all_that_was_packed_and_no_more(config: dict[str, Any]) -> None:
    codec = numcodecs.get_codec(dict(config))
    packed = bytes(codec.encode(DATA))
    for most in (len(DATA), 10 * len(DATA)):
        assert bytes(decoded_within(codec, packed, most)) == DATA
    with pytest.raises(InvalidInput, match="9,999"):
        decoded_within(codec, packed, len(DATA) - 1)


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, lzma.compress])
def test_parts_one_after_another_are_bounded_together(pack: Any) -> None:
    codec = numcodecs.get_codec({"id": pack.__module__.lstrip("_")})
    packed = pack(DATA[:6000]) + pack(DATA[6000:])
    assert decoded_within(codec, packed, len(DATA)) == DATA
    with pytest.raises(InvalidInput):
        decoded_within(codec, packed, len(DATA) - 1)


def test_a_frame_of_zstd_that_does_not_say_its_size_is_bounded() -> None:
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "zstd") as stream:
        stream.write(DATA)
    packed, codec = sink.getvalue().to_pybytes(), numcodecs.get_codec({"id": "zstd"})
    for most in (len(DATA), len(DATA) + 3):
        assert bytes(decoded_within(codec, packed, most)) == DATA
    with pytest.raises(RuntimeError, match="too small"):
        decoded_within(codec, packed, len(DATA) - 1)


def test_bytes_that_end_too_early_are_refused() -> None:
    with pytest.raises(InvalidInput, match="end too early"):
        inflated(zlib.compress(DATA)[:-9], len(DATA))
    wide = [{"id": lzma.FILTER_LZMA2, "dict_size": 1 << 30}]
    codec = numcodecs.get_codec({"id": "lzma", "format": lzma.FORMAT_RAW, "filters": wide})
    with pytest.raises(InvalidInput, match="a dictionary of"):
        decoded_within(codec, b"\x01", 100)
