"""One GPU that reduces sources, by CuPy and by kernels of our own."""

import time
from pathlib import Path

import numpy as np

from kernels.backend import Device, Progress, Reduction
from kernels.catalog import EXACT, resolve
from kernels.cuda.baselines import baselines
from kernels.cuda.baselines.method import BaselineMethod
from kernels.cuda.cupy_method import CupyMethod
from kernels.cuda.device import describe
from kernels.cuda.exact_method import ExactFloats
from kernels.cuda.failures import cuda_errors
from kernels.cuda.feed import Feed, piece_size
from kernels.cuda.launch import Gpu
from kernels.cuda.methods import ExactIntegers, Method, OwnMethod
from kernels.cuda.nans import NanCounter
from kernels.cuda.stopwatch import Stopwatch
from kernels.cuda.strategies import CUPY, FAST, own_strategies
from kernels.dtypes import DTYPES, DType
from kernels.exact.state import ExactState
from kernels.operands import operands
from kernels.ops import NanPolicy, Op, Terms, empty_value, op_named
from kernels.source import ArraySource, Source


class CudaBackend:
    """The GPU that CUDA numbers `index`, ready to reduce; see `kernels.backend.Backend`.

    Compiled kernels are kept in the folder `cache` (by default `kernels.cuda.compile.default_cache()`). Opening runs
    the sums of float32 and float64 once, so that the first job does not pay for loading them. Raises Unavailable where
    there is no such GPU, no driver or no CuPy.
    """

    def __init__(self, index: int = 0, cache: Path | None = None) -> None:
        self._gpu = Gpu(index, cache)
        self._feed = Feed(self._gpu)
        self._device = describe(self._gpu)
        for name in ("float32", "float64"):
            self.reduce(ArraySource(np.ones(1, dtype=DTYPES[name].numpy)), "sum")

    @property
    def device(self) -> Device:
        return self._device

    @property
    def gpu(self) -> Gpu:
        """For launching kernels directly, as benchmarks do."""
        return self._gpu

    def reduce(
        self,
        source: Source,
        op: str,
        *,
        strategy: str = "auto",
        nan_policy: NanPolicy = NanPolicy.PROPAGATE,
        progress: Progress | None = None,
        ddof: int = 0,
        other: Source | None = None,
    ) -> Reduction:
        """Reduce all elements of `source`. All strategies but peers' take sources larger than the GPU's memory; none
        claims an op of two sources or with a ddof, so these are refused.

        Raises InvalidInput, Unavailable, OutOfMemory or CudaError, and whatever `progress` raises.
        """
        row, dtype = op_named(op), source.dtype
        taken = operands(row, source, other, ddof)
        name = resolve(row, dtype, strategy, "cuda", taken.other_dtype)
        if source.count == 0:
            return self._empty(row, dtype, name)
        began = time.perf_counter()
        with self._gpu.active(), cuda_errors(f"{op} by {name}"):
            stopwatch = Stopwatch(self._gpu.stream)
            nans = self._nan_counter(row, dtype, name, nan_policy)
            method = self._method(row, source, name, omit_nan=nan_policy is NanPolicy.OMIT)
            if name == CUPY or name in baselines():
                pieces = iter([(self._feed.whole(source, progress), 0)])
            else:
                pieces = self._feed.pieces(source, progress)
            for array, first in pieces:
                with stopwatch:
                    if nans is not None:
                        nans.add(array, first)
                    method.add(array, first)
            kernel_ms = stopwatch.total_ms()
            total_ms = (time.perf_counter() - began) * 1e3
            if nans is not None and nan_policy is NanPolicy.RAISE:
                nans.refuse()
            missing = method.omitted if isinstance(method, ExactFloats) else nans.count() if nans is not None else 0
            if missing == source.count:
                return self._empty(row, dtype, name)
            finished = method.finish(source.count - missing)
        return Reduction(
            value=finished.value,
            dtype=row.result_dtype(dtype),
            count=source.count - missing,
            op=row.name,
            strategy=name,
            correctly_rounded=finished.correctly_rounded,
            load_ms=max(0.0, total_ms - kernel_ms),
            kernel_ms=kernel_ms,
            state=None if finished.state is None else finished.state.to_bytes(),
        )

    def _nan_counter(self, op: Op, dtype: DType, strategy: str, policy: NanPolicy) -> NanCounter | None:
        if policy is NanPolicy.PROPAGATE or not dtype.is_float:
            return None
        if policy is NanPolicy.OMIT and strategy == EXACT and op.terms is not Terms.NONE:
            return None  # the exact accumulator leaves them out, and counts them
        return NanCounter(self._gpu, dtype)

    def _method(self, op: Op, source: Source, strategy: str, *, omit_nan: bool) -> Method:
        dtype = source.dtype
        if strategy == CUPY:
            return CupyMethod(op, dtype, omit_nan=omit_nan)
        if strategy in baselines():
            return BaselineMethod(self._gpu, baselines()[strategy], op, dtype, omit_nan=omit_nan)
        if strategy == EXACT and dtype.is_float and op.terms is not Terms.NONE:
            return ExactFloats(self._gpu, op, dtype, omit_nan=omit_nan)
        own = own_strategies()[FAST if strategy == EXACT else strategy]
        pieces = -(-source.count // piece_size(source))
        method = OwnMethod(self._gpu, own, op, dtype, pieces=pieces, omit_nan=omit_nan)
        if strategy == EXACT and op.terms is not Terms.NONE:
            return ExactIntegers(method, op)
        return method

    def _empty(self, op: Op, dtype: DType, strategy: str) -> Reduction:
        state = None
        if strategy == EXACT and op.terms is not Terms.NONE:
            state = ExactState.empty(op.terms).to_bytes()
        return Reduction(
            value=empty_value(op, dtype),
            dtype=op.result_dtype(dtype),
            count=0,
            op=op.name,
            strategy=strategy,
            correctly_rounded=True,
            load_ms=0.0,
            kernel_ms=0.0,
            state=state,
        )

    def close(self) -> None:
        """Give back the GPU's memory and modules."""
        self._feed.close()
        self._gpu.close()
