"""Arguments that are packed for the driver: this driver is a stand-in that reads them as the real one does."""

import ctypes
import struct
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier, get_ident
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from warpfold.kernels.cuda.gpu.packed import Base, PackedFunction, repeated_launch, word_of

STREAM = 0x55


def nothing(*_: object) -> None:
    """The start of a thread that has a context already, or a driver of which nothing is asked."""


class Driver:
    """Notes each launch: its shape, and its arguments read by their sizes in bytes."""

    def __init__(self, *sizes: int) -> None:
        self.sizes = sizes
        self.launches: list[tuple[Any, ...]] = []

    def launch(self, function: int, *shape: int) -> None:
        """As `cupy.cuda.driver.launchKernel` is called."""
        *extents, shared, stream, table, extra = shape
        self.launches.append((function, tuple(extents), shared, stream, self.read(table), extra))

    def read(self, table: int) -> tuple[int, ...]:
        addresses = (ctypes.c_void_p * len(self.sizes)).from_address(table)
        return tuple(
            int.from_bytes(ctypes.string_at(address or 0, size), "little")
            for address, size in zip(addresses, self.sizes, strict=True)
        )


def test_a_launch_has_its_shape_and_its_arguments() -> None:
    driver = Driver(8, 8, 4, 8, 8)
    call = PackedFunction(0x77, 128, 4096, 5, driver.launch, nothing)
    arguments = (2**64 - 1, 0x7F0000001000, 2**32 - 1, 2**63, 0)
    call(5, STREAM, *arguments)
    assert driver.launches == [(0x77, (5, 1, 1, 128, 1, 1), 4096, STREAM, arguments, 0)]


def test_a_launch_has_as_many_arguments_as_its_kernel() -> None:
    call = PackedFunction(1, 32, 0, 2, nothing, nothing)
    for words in ((1,), (1, 2, 3)):
        with pytest.raises(struct.error, match="expected 2 items"):
            call(1, STREAM, *words)


def test_the_next_launch_has_arguments_of_its_own() -> None:
    driver = Driver(8, 8)
    call = PackedFunction(1, 1, 0, 2, driver.launch, nothing)
    call(1, STREAM, 9, 9)
    call(1, STREAM, 3, 4)
    assert [launch[4] for launch in driver.launches] == [(9, 9), (3, 4)]


def test_a_thread_does_not_change_what_the_driver_reads_for_another() -> None:
    threads, driver = 4, Driver(8, 8)
    packed = Barrier(threads)
    begun: list[int] = []

    def launch(*shape: int) -> None:
        packed.wait(10)  # every thread has packed its arguments before any of them is read
        driver.launch(*shape)

    call = PackedFunction(1, 1, 0, 2, launch, lambda: begun.append(get_ident()))
    with ThreadPoolExecutor(threads) as pool:
        for _ in range(2):
            list(pool.map(lambda number: call(number, STREAM, number, -number % 2**64), range(threads)))
    assert sorted(launch[4] for launch in driver.launches) == sorted([(k, -k % 2**64) for k in range(threads)] * 2)
    assert len(begun) == len(set(begun)) == threads + 1  # this thread, too, which made the function
    assert all(launch[1][0] == launch[4][0] for launch in driver.launches)


def test_a_repeated_launch_follows_the_array_and_its_values_and_keeps_its_other_arguments() -> None:
    driver = Driver(8, 4, 8, 8, 8)
    args = [(Base.ARRAY, 16), (None, 7), (Base.VALUES, 0), (None, 2**64 - 1), (Base.VALUES, 8)]
    launch = repeated_launch(0x77, 5, 128, 4096, args, driver.launch)
    launch(0x1000, 0x9000, STREAM)
    launch(0x2000, 0x8000, 0x66)
    shape = (5, 1, 1, 128, 1, 1)
    assert driver.launches == [
        (0x77, shape, 4096, STREAM, (0x1010, 7, 0x9000, 2**64 - 1, 0x9008), 0),
        (0x77, shape, 4096, 0x66, (0x2010, 7, 0x8000, 2**64 - 1, 0x8008), 0),
    ]


def test_a_word_is_an_integer_or_the_address_of_an_array() -> None:
    array = SimpleNamespace(data=SimpleNamespace(ptr=0x7F0000001000))
    assert [word_of(each) for each in (3, np.uint32(2**32 - 1), np.uint64(2**63), array)] == [
        3, 2**32 - 1, 2**63, 0x7F0000001000,
    ]  # fmt: skip
