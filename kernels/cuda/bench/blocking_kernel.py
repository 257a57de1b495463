"""The blocking kernel: it holds a stream, so that what is put on the stream meanwhile runs without waiting for the
host."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import numpy as np

from warpfold.kernels.cuda.compile import Unit
from warpfold.kernels.cuda.gpu.failures import cuda_errors
from warpfold.kernels.cuda.gpu.launch import Gpu
from warpfold.kernels.errors import KernelError

SOURCE = Path(__file__).parent / "hold.cu"
_KERNEL = "hold"
_LIMIT_S = 2.0


class Waited(KernelError):
    """The run that should be timed waits for the device by itself, so its stream cannot be held."""


def hold_unit() -> Unit:
    """The kernel that holds a stream."""
    return Unit(SOURCE, (_KERNEL,))


class BlockingKernel:
    """Holds the stream of `gpu`.

    The two words lie in the host's memory, page-locked, where the device sees them at the same address (CUDA C++
    Programming Guide, Unified Virtual Address Space).
    """

    def __init__(self, gpu: Gpu) -> None:
        import cupy

        self.gpu = gpu
        self._kernel = gpu.kernel(hold_unit(), _KERNEL)
        with cuda_errors("page-locked memory"):
            self._pinned = cupy.cuda.alloc_pinned_memory(8)
        self._words = np.frombuffer(self._pinned, dtype=np.uint32, count=2)

    @contextmanager
    def held(self) -> Iterator[None]:
        """Hold the stream within the block: what is put on it starts at the end of the block. At most a few hundred
        launches and events may be put on it, because a full queue makes the host wait. Raises Waited if the host waited
        for the stream within the block."""
        with held_together((self,)):
            yield

    @contextmanager
    def _blocked(self) -> Iterator[None]:
        self._words[:] = 0
        address = np.uint64(self._pinned.ptr)
        with self.gpu.active():
            self._kernel(1, 1, (address, np.uint64(self._pinned.ptr + 4), np.uint64(int(_LIMIT_S * 1e9))))
        try:
            yield
        finally:
            self._words[0] = 1

    def _settle(self) -> None:
        with cuda_errors("the held stream"):
            self.gpu.stream.synchronize()
        if self._words[1]:
            raise Waited(f"the stream was held for {_LIMIT_S:g} s, because the run waits for the device by itself")


@contextmanager
def held_together(blocking_kernels: Sequence[BlockingKernel]) -> Iterator[None]:
    """Hold the streams of several GPUs, which may wait for each other, as `BlockingKernel.held` holds one. At the end
    of the block all streams are let go before the first is waited for."""
    with ExitStack() as shut:
        for blocking_kernel in blocking_kernels:
            shut.enter_context(blocking_kernel._blocked())
        yield
    for blocking_kernel in blocking_kernels:
        blocking_kernel._settle()
