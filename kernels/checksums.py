"""Checksums of bytes that are read where they lie: they are verified while the bytes are reduced.

An archive has the CRC-32 of each of its members. Threads of their own read a member once more, each some parts of it,
while it is reduced (docs/decisions/0092-checksums-beside-the-reduction.md).
"""

import os
import zlib
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache, reduce
from importlib import import_module
from importlib.util import find_spec
from threading import Event, local

import numpy as np
from numpy.typing import NDArray

from warpfold.kernels.cores import usable_cores
from warpfold.kernels.errors import InvalidInput

_POLYNOMIAL = 0xEDB88320
"""That of CRC-32. Bit 31 is the coefficient of x^0."""
_ONE = 1 << 31
_X8 = 1 << 23
_PART = 1 << 23
_LEAST_COMPILED = 1 << 20
"""Fewer bytes take zlib less time than loading compiled code."""
_PIECE = 1 << 18
"""Bytes that stay in a second-level cache between their copy and their checksum."""


@dataclass(frozen=True, slots=True)
class Checksum:
    """The CRC-32 that `length` bytes of an open file from `begin` on should have. They are the member `name` of an
    archive, which errors call `called`."""

    descriptor: int
    begin: int
    length: int
    crc: int
    name: str
    called: str = ""


@contextmanager
def verified(checksums: Sequence[Checksum]) -> Iterator[None]:
    """Verify `checksums` by threads of their own while the block reduces the bytes, and wait for them behind it. Raises
    InvalidInput where bytes have another checksum."""
    if not checksums:
        yield
        return
    stop, threads = Event(), ThreadPoolExecutor(usable_cores(), "checksum")
    try:
        begun = [(each, _begun(each, threads, stop)) for each in checksums]
        yield
        for checksum, parts in begun:
            if reduce(_behind, (part.result() for part in parts), (0, 0))[0] != checksum.crc:
                fault = f"is damaged: the checksum of {checksum.name!r} is not that of its bytes"
                raise InvalidInput(f"{checksum.called} {fault}".lstrip(), "source")
    finally:
        stop.set()
        threads.shutdown(cancel_futures=True)


def _begun(checksum: Checksum, threads: ThreadPoolExecutor, stop: Event) -> "list[Future[tuple[int, int]]]":
    held, crc32 = local(), _method(checksum.length)

    def part(begin: int, length: int) -> tuple[int, int]:
        """The CRC-32 of some bytes, and their number."""
        if not hasattr(held, "buffer"):
            held.buffer = np.empty(_PIECE, np.uint8)
        crc, done = 0, 0
        while done < length and not stop.is_set():
            got = os.preadv(checksum.descriptor, [held.buffer[: length - done]], begin + done)
            if not got:
                raise InvalidInput("became shorter while it was read")
            crc = crc32(held.buffer[:got], crc)
            done += got
        return crc, length

    starts = range(checksum.begin, checksum.begin + checksum.length, _PART)
    end = checksum.begin + checksum.length
    return [threads.submit(part, start, min(_PART, end - start)) for start in starts]


def _method(length: int) -> Callable[[NDArray[np.uint8], int], int]:
    """The fastest way to the checksum of so many bytes: the base installation has no compiled code."""
    if length >= _LEAST_COMPILED and find_spec("numba") is not None:
        return import_module("warpfold.kernels.crc32").crc32  # type: ignore[no-any-return]
    return lambda data, crc: zlib.crc32(data.data, crc)


def _behind(first: tuple[int, int], second: tuple[int, int]) -> tuple[int, int]:
    """The checksum and the number of the bytes of `first` with those of `second` behind them. Zeros behind bytes
    multiply the polynomial that is their checksum by a power of x."""
    return _times(first[0], _power(second[1])) ^ second[0], first[1] + second[1]


@lru_cache(maxsize=4)
def _power(length: int) -> int:
    """x to the power of 8 · `length`, by squares."""
    power, square = _ONE, _X8
    while length:
        if length & 1:
            power = _times(power, square)
        square = _times(square, square)
        length >>= 1
    return power


def _times(first: int, second: int) -> int:
    """The product of two polynomials with coefficients 0 and 1, modulo that of CRC-32."""
    product = 0
    for place in range(31, -1, -1):
        if first >> place & 1:
            product ^= second
        second = second >> 1 ^ (_POLYNOMIAL if second & 1 else 0)
    return product
