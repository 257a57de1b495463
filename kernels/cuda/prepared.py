"""A kernel launch made ready once, to be started again and again with as little of the host's time as there is.

CuPy checks and packs the arguments of every launch, which takes longer than the driver's part of it. Here that is done
once: a start is one call of the driver.
"""

import ctypes
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from kernels.cuda.launch import Gpu, Kernel


@dataclass(frozen=True, slots=True)
class Call:
    """One launch as `Kernel.__call__` takes it."""

    kernel: Kernel
    grid: int
    block: int
    args: tuple[Any, ...]
    shared: int
    cooperative: bool


class Prepared:
    """Launches in their order, with the arguments that they were recorded with.

    `calls` are the launches; the arrays among their arguments are kept alive. `start` puts all on the stream of the GPU
    and returns.
    """

    def __init__(self, gpu: Gpu, calls: Sequence[Call]) -> None:
        from cupy.cuda import driver

        self.calls = tuple(calls)
        for call in calls:
            call.kernel.blocks_per_multiprocessor(call.block, call.shared)  # asks for the shared memory, if it is much
        self._packed = [_pack(call.args) for call in calls]
        stream = gpu.stream.ptr
        self._starts = [
            (
                driver.launchCooperativeKernel if call.cooperative else driver.launchKernel,
                (
                    call.kernel.function.kernel.ptr,
                    call.grid,
                    1,
                    1,
                    call.block,
                    1,
                    1,
                    call.shared,
                    stream,
                    packed.address,
                )
                + (() if call.cooperative else (0,)),
            )
            for call, packed in zip(calls, self._packed, strict=True)
        ]

    def start(self) -> None:
        """Raises CuPy's CUDADriverError; call it within `cuda_errors`."""
        for launch, arguments in self._starts:
            launch(*arguments)


@dataclass(frozen=True, slots=True)
class _Packed:
    """Argument values in memory, and the table of their addresses that the driver reads."""

    values: tuple[Any, ...]
    table: Any

    @property
    def address(self) -> int:
        return ctypes.addressof(self.table)


def _pack(args: Sequence[Any]) -> _Packed:
    values = tuple(ctypes.create_string_buffer(raw, len(raw)) for raw in map(_bytes_of, args))
    table = (ctypes.c_void_p * len(values))(*(ctypes.addressof(value) for value in values))
    return _Packed(values, table)


def _bytes_of(argument: Any) -> bytes:
    """A NumPy scalar's bytes, or the address that a CuPy array lies at."""
    if hasattr(argument, "data") and hasattr(argument.data, "ptr"):
        return int(argument.data.ptr).to_bytes(8, "little")
    return bytes(argument.tobytes())


class RecordingGpu(Gpu):
    """`gpu` with kernels that, within `recording`, write their launches down in place of running."""

    def __init__(self, gpu: Gpu) -> None:
        self.__dict__.update(gpu.__dict__)  # the same device, stream and modules
        self._calls: list[Call] | None = None

    def kernel(self, unit: Any, name: str, *, cooperative: bool = False) -> Kernel:
        kernel = super().kernel(unit, name, cooperative=cooperative)
        return _RecordingKernel(kernel.name, kernel.function, kernel.shared_limit, self, cooperative)

    @contextmanager
    def recording(self) -> Iterator[list[Call]]:
        """The list fills with the launches made within."""
        calls: list[Call] = []
        self._calls = calls
        try:
            yield calls
        finally:
            self._calls = None

    def take(self, call: Call) -> bool:
        """Whether the launch was written down."""
        if self._calls is None:
            return False
        self._calls.append(call)
        return True


@dataclass(frozen=True, slots=True)
class _RecordingKernel(Kernel):
    recorder: RecordingGpu
    cooperative: bool

    def __call__(self, grid: int, block: int, args: Sequence[Any], shared: int = 0) -> None:
        plain = Kernel(self.name, self.function, self.shared_limit)
        if not self.recorder.take(Call(plain, grid, block, tuple(args), shared, self.cooperative)):
            plain(grid, block, args, shared)
