"""Decompression that gives no more than was declared: a few bytes can be the packed form of any number of bytes, so a
decoder is told beforehand how many it may give."""

import bz2
import lzma
import re
import struct
import zlib
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

from warpfold.kernels.errors import InvalidInput

MOST_DICTIONARY_BYTES = 1 << 27
"""The memory that a decoder may take for the bytes that it has given already."""

_GZIP, _ZLIB = 31, 15
_ZSTD = b"\x28\xb5\x2f\xfd"
_ZSTD_HEAD = 18
"""The most bytes that the head of a frame has."""
_GOT = re.compile(r"got (\d+)")


class _Decoder(Protocol):
    """A decoder of the standard library."""

    @property
    def eof(self) -> bool: ...

    @property
    def unused_data(self) -> bytes: ...

    def decompress(self, data: Any, max_length: int = ..., /) -> bytes: ...


def inflated(data: Any, most: int, *, gzip: bool = False) -> bytes:
    """What `data` was before zlib, or gzip, packed it. Raises InvalidInput where that is more than `most` bytes, and
    zlib.error."""
    return _unpacked(lambda: zlib.decompressobj(_GZIP if gzip else _ZLIB), data, most, several=gzip)


def decoded_within(codec: Any, data: Any, most: int) -> Any:
    """What a codec of numcodecs makes of `data`, which are bytes. Raises InvalidInput where that is more than `most`
    bytes, and the errors of the codec."""
    match codec.codec_id:
        case "gzip":
            return inflated(data, most, gzip=True)
        case "zlib":
            return inflated(data, most)
        case "bz2":
            return _unpacked(bz2.BZ2Decompressor, data, most, several=True)
        case "lzma":
            return _unpacked(lambda: _lzma(codec), data, most, several=codec.format != lzma.FORMAT_RAW)
        case "zstd":
            return _zstd(codec, data, most)
        case "lz4":
            _check(struct.unpack_from("<I", data)[0], most)
        case "blosc":
            _check(struct.unpack_from("<I", data, 4)[0], most)
        case other:
            raise InvalidInput(f"is packed by {other!r}, which is not decoded here")
    return codec.decode(data)


def _check(size: int, most: int) -> None:
    if size > most:
        raise InvalidInput(f"holds {size:,} bytes where {most:,} are declared at most")


def _unpacked(begin: Callable[[], _Decoder], data: Any, most: int, *, several: bool) -> bytes:
    """What `data` was; with `several` it may be packed in parts, one after another."""
    left, parts, size = data, list[bytes](), 0
    while left:
        decoder = begin()
        while not decoder.eof:
            part = decoder.decompress(left, most + 1 - size)
            size += len(part)
            _check_unpacked(size, most)
            parts.append(part)
            left = decoder.unused_data if decoder.eof else bytes(getattr(decoder, "unconsumed_tail", b""))
            if not part and not left and not decoder.eof:
                raise InvalidInput("holds packed bytes that end too early")
        left = left.lstrip(b"\0") if several else b""
    return parts[0] if len(parts) == 1 else b"".join(parts)


def _check_unpacked(size: int, most: int) -> None:
    if size > most:
        raise InvalidInput(f"holds packed bytes that are more than the {most:,} that are declared")


def _lzma(codec: Any) -> lzma.LZMADecompressor:
    if codec.format != lzma.FORMAT_RAW:
        return lzma.LZMADecompressor(codec.format, MOST_DICTIONARY_BYTES)
    for each in codec.filters or ():
        if int(each.get("dict_size", 0)) > MOST_DICTIONARY_BYTES:
            raise InvalidInput(f"is packed by lzma with a dictionary of {int(each['dict_size']):,} bytes")
    return lzma.LZMADecompressor(codec.format, None, codec.filters)


def _zstd(codec: Any, data: Any, most: int) -> Any:
    """A frame of zstd says how many bytes it has, unless it was written as a stream. numcodecs decodes no more than the
    first frame says."""
    size = _zstd_size(bytes(data[:_ZSTD_HEAD]))
    if size is not None:
        _check(size, most)
        return codec.decode(data)
    out = np.empty(most, np.uint8)
    try:
        codec.decode(data, out)
    except RuntimeError as error:
        # numcodecs fills the array and then says that there might have been more.
        if (filled := _GOT.search(str(error))) is None:
            raise
        return out[: int(filled[1])]
    return out


def _zstd_size(data: bytes) -> int | None:
    """How many bytes the first frame has, by its head; None where it does not say."""
    if len(data) < 6 or not data.startswith(_ZSTD):
        raise ValueError("zstd did not pack these bytes")
    head = data[4]
    single, kind = head & 0x20, head >> 6
    at = 5 + (0 if single else 1) + (0, 1, 2, 4)[head & 3]
    width = (1 if single else 0, 2, 4, 8)[kind]
    if not width:
        return None
    return int.from_bytes(data[at : at + width], "little") + (256 if kind == 1 else 0)
