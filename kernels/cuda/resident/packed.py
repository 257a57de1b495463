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
    `begin` is called once in each thread, which needs a context of the driver.
    """

    __slots__ = ("_block", "_launch", "_pack", "_pointer", "_room", "_shared")

    def __init__(  # noqa: PLR0917
        self, pointer: int, block: int, shared: int, arguments: int, launch: DriverCall, begin: Callable[[], object]
    ) -> None:
        self._pointer, self._block, self._shared, self._launch = pointer, block, shared, launch
        self._pack, self._room = Struct(f"={arguments}Q").pack_into, _Room(arguments, begin)

    def __call__(self, grid: int, stream: int, *words: int) -> None:
        """Put a launch of `grid` blocks on the stream at that address. Raises CuPy's CUDADriverError, and struct.error
        where there are more or fewer words than arguments."""
        memory, table = self._room.parts
        self._pack(memory, 0, *words)
        self._launch(self._pointer, grid, 1, 1, self._block, 1, 1, self._shared, stream, table, 0)


class Base(Enum):
    """What an address is relative to."""

    ARRAY = 0
    VALUES = 1


class RepeatedLaunch:
    """A launch of one thread that is made again and again: of its words only the addresses change, those within an
    array and those within its values.

    `args` are words, each with what it is relative to, None for a word that stays.
    """

    __slots__ = ("_block", "_grid", "_launch", "_of_array", "_of_values", "_pointer", "_shared", "_words")

    def __init__(  # noqa: PLR0917
        self, pointer: int, grid: int, block: int, shared: int, args: Sequence[tuple[Base | None, int]],
        launch: DriverCall,
    ) -> None:  # fmt: skip
        self._pointer, self._grid, self._block, self._shared, self._launch = pointer, grid, block, shared, launch
        self._words = _Words(len(args))
        self._words.memory[: len(args)] = [word for _, word in args]
        self._of_array, self._of_values = (
            tuple((place, word) for place, (base, word) in enumerate(args) if base is wanted) for wanted in Base
        )

    def __call__(self, array: int, values: int, stream: int) -> None:
        """Put the launch on the stream at that address. Raises CuPy's CUDADriverError."""
        words = self._words
        for place, offset in self._of_array:
            words.memory[place] = array + offset
        for place, offset in self._of_values:
            words.memory[place] = values + offset
        self._launch(self._pointer, self._grid, 1, 1, self._block, 1, 1, self._shared, stream, words.table, 0)


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
    return RepeatedLaunch(kernel.function.kernel.ptr, grid, block, shared, words, driver.launchKernel)


def word_of(argument: Any) -> int:
    """An integer, or the address of an array."""
    address = getattr(getattr(argument, "data", None), "ptr", None)
    return int(argument) if address is None else int(address)
