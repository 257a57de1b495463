"""Launches that go to the driver past CuPy, which makes an object of each argument: here arguments are 64-bit words.

Words are integers from 0 to 2^64 − 1. A kernel on a little-endian machine reads of each as many bytes as its parameter
has.
"""

import ctypes
import threading
from collections.abc import Callable, Sequence
from enum import Enum
from struct import Struct
from typing import Any

from warpfold.kernels.cuda.gpu.launch import Kernel, bind_context

DriverCall = Callable[..., object]
"""`cupy.cuda.driver.launchKernel`, or a stand-in."""


class _Words:
    """Words in memory, and the table of their addresses that the driver reads."""

    def __init__(self, count: int) -> None:
        self.memory = (ctypes.c_uint64 * max(1, count))()
        start = ctypes.addressof(self.memory)
        self._addresses = (ctypes.c_void_p * max(1, count))(*range(start, start + 8 * count, 8))
        self.table = ctypes.addressof(self._addresses)


class _Room(threading.local):
    """Words of each thread, because other threads run while the driver reads."""

    def __init__(self, count: int, begin: Callable[[], object]) -> None:
        begin()
        self._words = _Words(count)
        self.parts = self._words.memory, self._words.table


class PackedFunction:
    """A loaded kernel, the shape of its blocks, and how many arguments it has.

    `pointer` is the driver's handle of it, `block` the threads and `shared` the bytes of shared memory of a block.
    `begin` is called once in each thread, which needs a context of the driver. A caller that cannot spare the time of
    another call does what `__call__` does.
    """

    def __init__(  # noqa: PLR0917
        self, pointer: int, block: int, shared: int, arguments: int, launch: DriverCall, begin: Callable[[], object]
    ) -> None:
        self.pointer, self.block, self.shared, self.launch = pointer, block, shared, launch
        self.pack, self.room = Struct(f"={arguments}Q").pack_into, _Room(arguments, begin)

    def __call__(self, grid: int, stream: int, *words: int) -> None:
        """Put a launch of `grid` blocks on the stream at that address. Raises CuPy's CUDADriverError, and struct.error
        where there are more or fewer words than arguments."""
        memory, table = self.room.parts
        self.pack(memory, 0, *words)
        self.launch(self.pointer, grid, 1, 1, self.block, 1, 1, self.shared, stream, table, 0)


class Base(Enum):
    """What an address is relative to."""

    ARRAY = 0
    VALUES = 1


RepeatedLaunch = Callable[[int, int, int], None]
"""Puts a launch for the array at an address, with values at another, on the stream at a third. It is of one thread.
Raises CuPy's CUDADriverError."""


def repeated_launch(  # noqa: PLR0917
    pointer: int, grid: int, block: int, shared: int, args: Sequence[tuple[Base | None, int]], launch: DriverCall
) -> RepeatedLaunch:
    """A launch of which only the addresses change, those within an array and those within its values. `args` are words,
    each with what it is relative to, None for a word that stays."""
    words = _Words(len(args))
    memory, table = words.memory, words.table
    memory[: len(args)] = [word for _, word in args]
    of_array, of_values = (
        tuple((place, word) for place, (base, word) in enumerate(args) if base is wanted) for wanted in Base
    )

    if len(of_array) == len(of_values) == 1:  # nearly all: loops over one address take half a microsecond more
        (first, after_array), (second, after_values) = *of_array, *of_values

        def start_two(array: int, values: int, stream: int, _kept: _Words = words) -> None:
            memory[first] = array + after_array
            memory[second] = values + after_values
            launch(pointer, grid, 1, 1, block, 1, 1, shared, stream, table, 0)

        return start_two

    def start(array: int, values: int, stream: int, _kept: _Words = words) -> None:
        for place, offset in of_array:
            memory[place] = array + offset
        for place, offset in of_values:
            memory[place] = values + offset
        launch(pointer, grid, 1, 1, block, 1, 1, shared, stream, table, 0)

    return start


def function_of(kernel: Kernel, block: int, shared: int, arguments: int) -> PackedFunction:
    """The function that starts a kernel in blocks of this shape."""
    from cupy.cuda import driver

    kernel.allow(shared)
    return PackedFunction(kernel.function.kernel.ptr, block, shared, arguments, driver.launchKernel, bind_context)


def repeated(
    kernel: Kernel, grid: int, block: int, shared: int, args: Sequence[tuple[Base | None, Any]]
) -> RepeatedLaunch:
    """The launch of a kernel with these arguments: CuPy arrays, which are their addresses, and integers."""
    from cupy.cuda import driver

    kernel.allow(shared)
    words = [(base, word_of(arg)) for base, arg in args]
    return repeated_launch(kernel.function.kernel.ptr, grid, block, shared, words, driver.launchKernel)


def word_of(argument: Any) -> int:
    """An integer, or the address of an array."""
    address = getattr(getattr(argument, "data", None), "ptr", None)
    return int(argument) if address is None else int(address)
