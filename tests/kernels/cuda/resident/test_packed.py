"""Arguments that are packed for the driver: this driver is a stand-in that reads them as the real one does."""

import ctypes
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier, get_ident
from types import SimpleNamespace
from typing import Any

import numpy as np

from warpfold.kernels.cuda.resident.packed import PackedFunction

STREAM = SimpleNamespace(ptr=0x55)


def nothing() -> None:
    """The start of a thread that has a context already."""


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
    array = SimpleNamespace(data=SimpleNamespace(ptr=0x7F0000001000))
    call = PackedFunction(0x77, driver.launch, nothing)
    call((5,), (128,), (2**64 - 1, array, np.uint32(2**32 - 1), np.uint64(2**63), 0), 4096, STREAM)
    arguments = (2**64 - 1, 0x7F0000001000, 2**32 - 1, 2**63, 0)
    assert driver.launches == [(0x77, (5, 1, 1, 128, 1, 1), 4096, 0x55, arguments, 0)]


def test_fewer_arguments_after_more_are_those_of_the_call() -> None:
    driver = Driver(8, 8)
    call = PackedFunction(1, driver.launch, nothing)
    PackedFunction(2, lambda *shape: None, nothing)((1,), (1,), (9,) * 32, 0, STREAM)
    call((1,), (1,), (9, 9), 0, STREAM)
    call((1,), (1,), (3, 4), 0, STREAM)
    assert [launch[4] for launch in driver.launches] == [(9, 9), (3, 4)]


def test_a_thread_does_not_change_what_the_driver_reads_for_another() -> None:
    threads, driver = 4, Driver(8, 8)
    packed = Barrier(threads)
    begun: list[int] = []

    def launch(*shape: int) -> None:
        packed.wait(10)  # every thread has packed its arguments before any of them is read
        driver.launch(*shape)

    call = PackedFunction(1, launch, lambda: begun.append(get_ident()))
    with ThreadPoolExecutor(threads) as pool:
        for _ in range(2):
            list(pool.map(lambda number: call((number,), (1,), (number, -number % 2**64), 0, STREAM), range(threads)))
    assert sorted(launch[4] for launch in driver.launches) == sorted([(k, -k % 2**64) for k in range(threads)] * 2)
    assert len(begun) == len(set(begun)) == threads + 1  # this thread, too, which made the function
    assert all(launch[1][0] == launch[4][0] for launch in driver.launches)
