"""Exact totals of arrays that are on a GPU already. They stay on the GPU, where they are added to each other and
rounded: nothing waits here, and nothing comes back to the host."""

from typing import Any

from warpfold.kernels.cuda.compile import Unit
from warpfold.kernels.cuda.exact.finishing import FinishedOp
from warpfold.kernels.cuda.exact.launch import Planned, WholeAddition
from warpfold.kernels.cuda.exact.shapes import SumKind
from warpfold.kernels.cuda.gpu.launch import Gpu
from warpfold.kernels.cuda.gpu.packed import PackedFunction, function_of, word_of
from warpfold.kernels.cuda.grouped.totals import ROOM, finished_kernel
from warpfold.kernels.cuda.grouped.totals import SOURCE as ROUNDING
from warpfold.kernels.dtypes import DType

_ROUNDING_THREADS = 32


class ResidentTotals:
    """The kernels of one GPU for totals of whole arrays. Each is compiled and loaded when it is first used, by any
    thread.

    Addresses are those of memory on the GPU, `limbs` are a CuPy array of a total (`kernels.cuda.exact.total`), and a
    `stream` has its address as `ptr`.
    """

    def __init__(self, gpu: Gpu) -> None:
        self.gpu = gpu
        self._adding: dict[tuple[str, SumKind], WholeAddition] = {}
        self._functions: dict[str, PackedFunction] = {}
        self._rounding: dict[tuple[str, SumKind], PackedFunction] = {}

    def add(  # noqa: PLR0917
        self, kind: SumKind, dtype: DType, addresses: tuple[int, ...], count: int, limbs: Any, stream: Any
    ) -> int:
        """Add `count` ≥ 1 elements of a float `dtype`, or the products of two arrays, whose addresses lie alike between
        boundaries of 16 bytes. Returns how many numbers below 2**32 were added to one limb at most."""
        addition = self._adding.get((dtype.name, kind))
        if addition is None:
            addition = self._adding[dtype.name, kind] = WholeAddition(self.gpu, dtype, kind)
        for planned in addition.planned(addresses, count, limbs):
            self._start(planned, stream.ptr)
        return addition.added(addresses[0], count)

    def _start(self, planned: Planned, stream: int) -> None:
        function = self._functions.get(planned.launch.kernel.name)
        if function is None:
            function = planned.launch.function(len(planned.args))
            self._functions[planned.launch.kernel.name] = function
        function(planned.grid, stream, *map(word_of, planned.args))

    @staticmethod
    def rounds(op: FinishedOp) -> bool:
        """Whether the GPU rounds totals of this op: it does all of one array."""
        return op.kind is not SumKind.PRODUCTS

    def round(self, op: FinishedOp, dtype: DType, limbs: Any, count: int, out: int, stream: Any, ddof: int) -> None:  # noqa: PLR0917
        """Round a total of `count` elements to a value of `dtype` at `out`."""
        members = (0, count, 1, count, count)  # one row
        arguments = (word_of(limbs), *members, 0, 1, int(op.finish), ddof, 0, out, 0, 0)
        function = self._rounding.get((dtype.name, op.kind))
        if function is None:
            name = finished_kernel(dtype, op.kind)
            kernel = self.gpu.kernel(Unit(ROUNDING, (name,)), name)
            room = _ROUNDING_THREADS * ROOM[op.kind]
            function = function_of(kernel, _ROUNDING_THREADS, room, len(arguments))
            self._rounding[dtype.name, op.kind] = function
        function(1, stream.ptr, *arguments)
