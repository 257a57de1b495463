"""Kernels whose arguments are packed in place and go to the driver past CuPy, which makes an object of each one."""

import ctypes
import threading
from collections.abc import Callable
from functools import lru_cache
from struct import Struct
from typing import Any

from warpfold.kernels.cuda.gpu.launch import Kernel, bind_context

_MOST_ARGUMENTS = 32


class _Room(threading.local):
    """Arguments of 64 bits each, and the table of their addresses that the driver reads. Each thread has its own,
    because other threads run while the driver reads."""

    def __init__(self, begin: Callable[[], object]) -> None:
        begin()
        self.memory = ctypes.create_string_buffer(8 * _MOST_ARGUMENTS)
        start = ctypes.addressof(self.memory)
        self._addresses = (ctypes.c_void_p * _MOST_ARGUMENTS)(*range(start, start + 8 * _MOST_ARGUMENTS, 8))
        self.table = ctypes.addressof(self._addresses)


class PackedFunction:
    """A loaded kernel that is called as CuPy's functions are. `pointer` is the driver's handle of it, and
    `launch_kernel` the driver's call as `cupy.cuda.driver` has it. `begin` is called once in each thread, which needs a
    context of the driver.

    Arguments are integers, NumPy scalars of integers, or CuPy arrays. All have 64 bits of room, of which a kernel on a
    little-endian machine reads what it needs.
    """

    def __init__(self, pointer: int, launch_kernel: Callable[..., object], begin: Callable[[], object]) -> None:
        self._pointer, self._launch, self._room = pointer, launch_kernel, _Room(begin)

    def __call__(self, grid: tuple[int], block: tuple[int], args: tuple[Any, ...], shared: int, stream: Any) -> None:
        """Put a launch on `stream`. Raises CuPy's CUDADriverError."""
        room = self._room
        words = [arg if type(arg) is int else _word(arg) for arg in args]
        _packer(len(args))(room.memory, 0, *words)
        self._launch(self._pointer, grid[0], 1, 1, block[0], 1, 1, shared, stream.ptr, room.table, 0)


def function_of(kernel: Kernel) -> PackedFunction:
    """The function that starts a kernel."""
    from cupy.cuda import driver

    return PackedFunction(kernel.function.kernel.ptr, driver.launchKernel, bind_context)


@lru_cache(maxsize=_MOST_ARGUMENTS)
def _packer(count: int) -> Any:
    return Struct(f"={count}Q").pack_into


def _word(argument: Any) -> int:
    """An integer, or the address of an array."""
    address = getattr(getattr(argument, "data", None), "ptr", None)
    return int(argument) if address is None else int(address)
