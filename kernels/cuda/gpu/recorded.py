"""Kernel launches that are prepared once and started again and again, with as little of the host's time as possible.

CuPy checks and packs the arguments of every launch, which takes longer than the driver's part of it. A prepared launch
does that once, so that a start is one call of the driver.
"""

import ctypes
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from warpfold.kernels.cuda.gpu.launch import Gpu, Kernel, follow


@dataclass(frozen=True, slots=True)
class RecordedLaunch:
    """The arguments of one launch, as `Kernel.__call__` takes them, and whether it runs beside the GPU's stream."""

    kernel: Kernel
    grid: int
    block: int
    args: tuple[Any, ...]
    shared: int
    cooperative: bool
    aside: bool = False


class _Start(partial[None]):
    """A prepared call of the driver, and the objects that must live as long as the call may be made."""

    kept: Any


class Prepared:
    """Launches in their order, with the arguments that they were recorded with.

    The arrays among the arguments of `launches` are kept alive. `start` puts all launches on the stream of the GPU and
    returns. It raises CuPy's CUDADriverError, so call it within `cuda_errors`.
    """

    def __init__(self, gpu: Gpu, launches: Sequence[RecordedLaunch]) -> None:
        from cupy.cuda import driver

        self.launches = tuple(launches)
        for launch in launches:
            launch.kernel.blocks_per_multiprocessor(launch.block, launch.shared)  # asks for much shared memory
        self._starts: list[Callable[[], None]] = []
        aside = False
        for launch in launches:
            if launch.aside and not aside:
                aside = True
                self._starts.append(partial(follow, gpu.side, _event(), gpu.stream))
            call = driver.launchCooperativeKernel if launch.cooperative else driver.launchKernel
            shape = (launch.grid, 1, 1, launch.block, 1, 1, launch.shared)
            packed = _pack(launch.args)
            where = (gpu.side.ptr if launch.aside else gpu.stream.ptr, packed.address) + (
                () if launch.cooperative else (0,)
            )
            start = _Start(call, launch.kernel.function.kernel.ptr, *shape, *where)
            start.kept = launch, packed
            self._starts.append(start)
        if aside:
            self._starts.append(partial(follow, gpu.stream, _event(), gpu.side))
        # Where there is one launch, `start` is the call of the driver itself.
        self.start: Callable[[], None] = self._starts[0] if len(self._starts) == 1 else self._start_all

    def _start_all(self) -> None:
        for start in self._starts:
            start()


def _event() -> Any:
    from cupy.cuda import Event

    return Event(disable_timing=True)


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
        self.__dict__.update(gpu.__dict__)  # the recorder has the device, the stream and the modules of `gpu`
        self._recorded: list[RecordedLaunch] | None = None
        self._aside = False

    @contextmanager
    def aside(self) -> Iterator[None]:
        if self._recorded is None:
            with super().aside():
                yield
            return
        self._aside = True
        try:
            yield
        finally:
            self._aside = False

    def join(self) -> None:
        if self._recorded is None:
            super().join()

    def kernel(self, unit: Any, name: str, *, cooperative: bool = False) -> Kernel:
        kernel = super().kernel(unit, name, cooperative=cooperative)
        return _RecordingKernel(kernel.name, kernel.function, kernel.shared_limit, self, cooperative)

    @contextmanager
    def recording(self) -> Iterator[list[RecordedLaunch]]:
        """The list fills with the launches made within."""
        launches: list[RecordedLaunch] = []
        self._recorded = launches
        try:
            yield launches
        finally:
            self._recorded = None

    def take(self, call: RecordedLaunch) -> bool:
        """Whether the launch was written down."""
        if self._recorded is None:
            return False
        self._recorded.append(replace(call, aside=self._aside))
        return True


@dataclass(frozen=True, slots=True)
class _RecordingKernel(Kernel):
    recorder: RecordingGpu
    cooperative: bool

    def __call__(self, grid: int, block: int, args: Sequence[Any], shared: int = 0) -> None:
        plain = Kernel(self.name, self.function, self.shared_limit)
        if not self.recorder.take(RecordedLaunch(plain, grid, block, tuple(args), shared, self.cooperative)):
            plain(grid, block, args, shared)
