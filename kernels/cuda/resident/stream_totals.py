"""Totals of the launches of each stream, which are 0 between launches."""

from contextlib import AbstractContextManager
from threading import get_ident
from typing import Any

from warpfold.kernels.cuda.exact.shapes import SumKind
from warpfold.kernels.cuda.exact.total import limbs_of
from warpfold.kernels.cuda.gpu.failures import cuda_errors

STREAM_OF_THREAD = 2
"""The handle by which each thread names a stream of its own (cudaStreamPerThread)."""

WORDS = max(limbs_of(kind) + 1 for kind in SumKind)
"""Words of 64 bits of a total, and of how many blocks have added to it."""

_WORD_BYTES = 8


class Totals:
    """Room for so many `totals` at a time on each stream of one GPU: the launches of a stream share it, and leave it 0.

    `known` has the addresses by those of the streams, and `number_at` says how many bytes behind them there is room for
    the number of a kernel that the data choose. A launch that is captured into a graph gets room of its own,
    because the graph may run on any stream.
    """

    def __init__(self, totals: int) -> None:
        self.number_at = _WORD_BYTES * WORDS * totals
        self._words = WORDS * totals + 1
        self._kept: dict[tuple[int, int], Any] = {}
        self.known: dict[int, int] = {}

    def of(self, stream: int, *, captured: bool) -> Any:
        """The room for a stream, a CuPy array that must live until the launch is made."""
        if captured:
            return self._zeros(stream)
        key = (stream, get_ident() if stream == STREAM_OF_THREAD else 0)
        words = self._kept.get(key)
        if words is None:
            words = self._kept[key] = self._zeros(stream)
            if stream != STREAM_OF_THREAD:
                self.known[stream] = words.data.ptr
        return words

    def _zeros(self, stream: int) -> Any:
        import cupy

        with cuda_errors("totals"), stream_at(stream):
            return cupy.zeros(self._words, dtype=cupy.uint64)


class _Named:
    """A stream by its address, as CUDA's protocol of streams has it."""

    def __init__(self, address: int) -> None:
        self._address = address

    def __cuda_stream__(self) -> tuple[int, int]:
        return 0, self._address


def stream_at(address: int) -> AbstractContextManager[Any]:
    """A context in which the stream at this address, of the current device, is CuPy's current one."""
    import cupy

    stream: AbstractContextManager[Any] = cupy.cuda.Stream.null
    if address:
        stream = cupy.cuda.Stream.from_external(_Named(address))
    return stream
