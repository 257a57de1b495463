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

from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.machine.cores import usable_cores

_POLYNOMIAL = 0xEDB88320
"""The polynomial of CRC-32. Here and in all checksums bit 31 is the coefficient of x^0."""

_ONE, _X8 = 1 << 31, 1 << 23
"""The polynomials 1 and x^8."""

_PART_BYTES = 1 << 23
"""The bytes of a checksum that one thread computes at a time."""

_LEAST_COMPILED_BYTES = 1 << 20
"""Fewer bytes take zlib less time than loading compiled code."""

_PIECE_BYTES = 1 << 18
"""Bytes that stay in a second-level cache between their copy and their checksum."""


@dataclass(frozen=True, slots=True)
class Checksum:
    """The CRC-32 that `length` bytes of an open file should have, from byte `begin` on. These bytes are the member
    `name` of an archive, whose own name in errors is `called`."""

    descriptor: int
    begin: int
    length: int
    crc: int
    name: str
    called: str = ""


@contextmanager
def verified(checksums: Sequence[Checksum]) -> Iterator[None]:
    """Verify `checksums` by other threads while the block reduces the bytes, and wait for these threads after the
    block. Raises InvalidInput where bytes have another checksum, or where a file became shorter."""
    if not checksums:
        yield
        return
    stop, threads = Event(), ThreadPoolExecutor(usable_cores(), "checksum")
    try:
        begun = [(each, _parts_of(each, threads, stop)) for each in checksums]
        yield
        for checksum, parts in begun:
            if reduce(_joined, (part.result() for part in parts), (0, 0))[0] != checksum.crc:
                fault = f"is damaged: the checksum of {checksum.name!r} is not that of its bytes"
                raise InvalidInput(f"{checksum.called} {fault}".lstrip(), "source")
    finally:
        stop.set()
        threads.shutdown(cancel_futures=True)


def verify(checksums: Sequence[Checksum]) -> None:
    """Verify `checksums`, whose bytes were reduced before. Raises as `verified`."""
    with verified(checksums):
        pass


def _parts_of(checksum: Checksum, threads: ThreadPoolExecutor, stop: Event) -> "list[Future[tuple[int, int]]]":
    """The CRC-32 and the length of each part of the bytes, in order, which `threads` compute until `stop` is set."""
    held, crc32 = local(), _crc32_for(checksum.length)

    def part(begin: int, length: int) -> tuple[int, int]:
        """The CRC-32 of `length` bytes from `begin` on, and `length`."""
        if not hasattr(held, "buffer"):
            held.buffer = np.empty(_PIECE_BYTES, np.uint8)
        crc, done = 0, 0
        while done < length and not stop.is_set():
            got = os.preadv(checksum.descriptor, [held.buffer[: length - done]], begin + done)
            if not got:
                raise InvalidInput("became shorter while it was read")
            crc = crc32(held.buffer[:got], crc)
            done += got
        return crc, length

    end = checksum.begin + checksum.length
    starts = range(checksum.begin, end, _PART_BYTES)
    return [threads.submit(part, start, min(_PART_BYTES, end - start)) for start in starts]


def _crc32_for(length: int) -> Callable[[NDArray[np.uint8], int], int]:
    """The fastest function that continues the CRC-32 of `length` bytes: the base installation has no compiled one."""
    if length >= _LEAST_COMPILED_BYTES and find_spec("numba") is not None:
        return import_module("warpfold.kernels.sources.crc32").crc32  # type: ignore[no-any-return]
    return lambda data, crc: zlib.crc32(data.data, crc)


def _joined(first: tuple[int, int], second: tuple[int, int]) -> tuple[int, int]:
    """The CRC-32 and the length of the bytes of `first` with those of `second` behind them. A byte of zeros behind
    other bytes multiplies their CRC-32, as a polynomial, by x^8."""
    return _product(first[0], _power(second[1])) ^ second[0], first[1] + second[1]


@lru_cache(maxsize=4)
def _power(length: int) -> int:
    """x^(8 · length) modulo the polynomial of CRC-32, by repeated squares."""
    power, square = _ONE, _X8
    while length:
        if length & 1:
            power = _product(power, square)
        square = _product(square, square)
        length >>= 1
    return power


def _product(first: int, second: int) -> int:
    """The product of two polynomials with coefficients 0 and 1, modulo the polynomial of CRC-32."""
    product = 0
    for place in range(31, -1, -1):
        if first >> place & 1:
            product ^= second
        second = second >> 1 ^ (_POLYNOMIAL if second & 1 else 0)
    return product
