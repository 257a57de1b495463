"""Codecs of Zarr arrays: which are taken, and how they are kept from giving more bytes than a chunk declares.

Only known codecs are taken, because a codec of numcodecs (pickle) runs code that a chunk contains. Those that unpack
are replaced by `bounded` ones: each of a chain is bounded, so that a chain of them is bounded, too.
"""

import asyncio
import json
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from math import prod
from typing import Any

import numpy as np

from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.formats.bounded import decoded_within
from warpfold.kernels.formats.folder import Tree
from warpfold.kernels.formats.zarr_store import MOST_METADATA_BYTES
from warpfold.kernels.machine.extras import required

_PACKING = frozenset({"blosc", "gzip", "zstd", "zlib", "bz2", "lzma", "lz4"})
_CODECS = _PACKING | frozenset(
    {"bytes", "transpose", "sharding_indexed", "crc32c", "delta", "shuffle", "fixedscaleoffset", "quantize"}
    | {"bitround", "packbits", "astype", "adler32", "crc32", "fletcher32"}
)
_DTYPES = ("dtype", "astype", "encode_dtype", "decode_dtype")
SLACK_BYTES = 1 << 16
"""What checksums, and what packs bytes that cannot be packed, may add to a chunk."""


def metadata_of(folder: Tree, name: str) -> dict[str, Any]:
    """A file of metadata of a hierarchy; empty where it is not there."""
    written = folder.read(name, 0, None, MOST_METADATA_BYTES)
    document = {} if written is None else json.loads(written)
    return document if isinstance(document, dict) else {}


def check_codecs(folder: Tree, path: str) -> None:
    """Raise InvalidInput where an array is encoded by a codec that may do more than decode."""
    second = metadata_of(folder, f"{path}/.zarray")
    third = metadata_of(folder, f"{path}/zarr.json")
    used = [*(second.get("filters") or ()), *filter(None, [second.get("compressor")]), *(third.get("codecs") or ())]
    for name, configuration in _flat(used):
        if name.removeprefix("numcodecs.") not in _CODECS:
            raise InvalidInput(f"holds {path!r} encoded by {name[:64]!r}, which is not decoded here")
        for dtype in (np.dtype(configuration[field]) for field in _DTYPES if configuration.get(field)):
            if dtype.kind not in "biufcmM":
                raise InvalidInput(f"holds {path!r} encoded by {name[:64]!r} of no numbers, which is not decoded here")


def _flat(codecs: Iterable[Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """The names of codecs, and of those within them, with their configurations."""
    for codec in codecs:
        named = codec if isinstance(codec, dict) else {"id": codec}
        inner = named.get("configuration", named)
        inner = inner if isinstance(inner, dict) else {}
        yield str(named.get("id", named.get("name"))), inner
        yield from _flat([*(inner.get("codecs") or ()), *(inner.get("index_codecs") or ())])


def bound_decoders(array: Any) -> None:
    """Have an array of zarr-python that is open decode no chunk to more bytes than it declares."""
    opened = array.async_array
    metadata, pipeline = opened.metadata, opened.codec_pipeline
    if metadata.zarr_format == 2:
        most = prod(array.chunks) * array.dtype.itemsize
        widest = max((_widened(each, array.dtype.itemsize) for each in metadata.filters or ()), default=1.0)
        wrap = _Bounded.around(int(most * widest) + SLACK_BYTES)
        codec = required("zarr.codecs._v2", "arrays").V2Codec
        filters = None if metadata.filters is None else tuple(map(wrap, metadata.filters))
        bounded = [codec(filters=filters, compressor=wrap(metadata.compressor))]
    else:
        bounded = _bounded(tuple(pipeline))
    object.__setattr__(opened, "codec_pipeline", type(pipeline).from_codecs(bounded))


def _widened(codec: Any, itemsize: int) -> float:
    """How many times wider elements may be before a filter has decoded them."""
    stored = getattr(codec, "encode_dtype", None) or getattr(codec, "astype", None)
    return 1.0 if stored is None else max(1.0, np.dtype(stored).itemsize / itemsize)


class _Bounded:
    """A codec of numcodecs that gives at most so many bytes."""

    def __init__(self, codec: Any, most: int) -> None:
        self._codec, self._most = codec, most

    @classmethod
    def around(cls, most: int) -> Any:
        """A function that gives a codec bounded; of one that packs nothing, the codec itself."""
        return lambda codec: cls(codec, most) if getattr(codec, "codec_id", None) in _PACKING else codec

    def decode(self, data: Any) -> Any:
        return decoded_within(self._codec, memoryview(data).cast("B"), self._most)


def _bounded(codecs: Sequence[Any]) -> list[Any]:
    """The codecs of a chain of Zarr 3, and of shards in it, bounded."""
    sharding = required("zarr.codecs", "arrays").ShardingCodec
    # The index of a shard takes 16 bytes for each of its chunks, which have an element at least.
    made, index = [], 16 if any(isinstance(codec, sharding) for codec in codecs) else 0
    for codec in codecs:
        if isinstance(codec, sharding):
            made.append(
                sharding(
                    chunk_shape=codec.chunk_shape,
                    codecs=_bounded(codec.codecs),
                    index_codecs=_bounded(codec.index_codecs),
                    index_location=codec.index_location,
                )
            )
        else:
            inner = _numcodec(codec)
            made.append(codec if inner is None else _bounded_type()(inner, index))
    return made


def _numcodec(codec: Any) -> Any | None:
    """The codec of numcodecs that does the work of a codec of Zarr 3 that packs; None of any other."""
    for name in ("_codec", "_gzip_codec", "_zstd_codec", "_blosc_codec"):
        inner = getattr(codec, name, None)
        if inner is not None and getattr(inner, "codec_id", None) in _PACKING:
            return inner
    return None


@cache
def _bounded_type() -> Any:
    """The class of bounded codecs of Zarr 3. It derives from zarr's, so it exists only where zarr is installed."""
    codecs = required("zarr.abc.codec", "arrays")

    class BoundedCodec(codecs.BytesBytesCodec):  # type: ignore[misc, name-defined, unused-ignore]
        """What decodes a chunk, or a shard, to the bytes that its metadata declare and no more."""

        is_fixed_size = False

        def __init__(self, codec: Any, beside: int) -> None:
            """With `beside`, there are so many bytes beside each element."""
            object.__setattr__(self, "_codec", codec)
            object.__setattr__(self, "_beside", beside)

        def to_dict(self) -> dict[str, Any]:
            raise NotImplementedError("an array that is read is not described anew")

        async def _decode_single(self, chunk_bytes: Any, chunk_spec: Any) -> Any:
            each = chunk_spec.dtype.to_native_dtype().itemsize + self._beside
            most = prod(chunk_spec.shape) * each + SLACK_BYTES
            data = memoryview(chunk_bytes.as_numpy_array()).cast("B")
            made = await asyncio.to_thread(decoded_within, self._codec, data, most)
            return chunk_spec.prototype.buffer.from_array_like(np.frombuffer(made, np.uint8))

        async def _encode_single(self, chunk_bytes: Any, chunk_spec: Any) -> Any:
            raise NotImplementedError("the files of users are only read")

        def compute_encoded_size(self, input_byte_length: int, chunk_spec: Any) -> int:
            raise NotImplementedError

    return BoundedCodec
