"""NumPy as a strategy: one call reduces the whole array in memory, with NumPy's order of additions and its overflow."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from warpfold.kernels.aggregates.patterns import is_nan, refuse_nan, widened
from warpfold.kernels.backend import Progress, Reduction, Stages
from warpfold.kernels.cpu.memory import require
from warpfold.kernels.cpu.strategy import CpuStrategy
from warpfold.kernels.dtypes import DTYPES, Kind, dtype_of
from warpfold.kernels.machine.preparation import working_s
from warpfold.kernels.ops import Finish, NanPolicy, Op, Terms, Value, empty_value
from warpfold.kernels.ops.operands import Operands, check_counts, check_freedom
from warpfold.kernels.source import ArraySource, Source
from warpfold.kernels.sources.sequential import SequentialSource, gathered


class NumpyStrategy(CpuStrategy):
    """Reduces an array in memory as a whole."""

    def reduce(
        self,
        operands: Operands,
        op: Op,
        nan_policy: NanPolicy,
        progress: Progress | None,
        *,
        compiled: bool = True,
    ) -> Reduction:
        """Reduce in memory.

        Raises OutOfMemory, with both numbers, before it reads an array that does not fit; InvalidInput for a NaN where
        the policy is RAISE, and where OMIT leaves nothing of an op that is undefined on nothing.
        """
        began = working_s()
        source, dtype = gathered(operands.source), operands.source.dtype
        second = None if operands.other is None else gathered(operands.other)
        needed = sum(_bytes(operand, op, nan_policy) for operand in (source, second) if operand is not None)
        require(needed, f"strategy numpy on {source.count:,} elements")
        if second is not None:
            check_counts(op, source.count, second.count)
        array = source.read(0, source.count)
        other = None if second is None else second.read(0, source.count)
        loaded = working_s()
        if other is not None:
            array, other = _pairs(array, other, operands, nan_policy)
        if other is None and dtype.is_float and nan_policy is NanPolicy.RAISE:
            refuse_nan(0, array, dtype)
        kept = None
        if other is None and dtype.is_float and nan_policy is NanPolicy.OMIT:
            kept = np.flatnonzero(~is_nan(array, dtype))
            array = array[kept]
        if array.size:
            check_freedom(op, array.size, operands.ddof)
            with np.errstate(all="ignore"):
                value = _value(op, operands, array, other)
        else:
            value = empty_value(op, dtype)
        if kept is not None and array.size and op.places:
            value = int(kept[int(value)])
        ended = working_s()
        if progress is not None:
            progress(source.count, source.count)
        return Reduction(
            value=value,
            dtype=operands.result_dtype(op),
            count=array.size,
            op=op.name,
            strategy=self.name,
            correctly_rounded=not op.rounds,  # integers wrap at 64 bits
            load_ms=(loaded - began) * 1e3,
            kernel_ms=(ended - loaded) * 1e3,
            stages=_stages(operands, loaded - began, ended - loaded),
        )


def _stages(operands: Operands, load_s: float, reduce_s: float) -> Stages:
    sources = [source for source in (operands.source, operands.other) if source is not None]
    if any(isinstance(source, SequentialSource) for source in sources):
        return Stages(decode_s=load_s, reduce_s=reduce_s)
    in_memory = all(isinstance(source, ArraySource) and source.file is None for source in sources)
    return Stages(read_s=None if in_memory else load_s, reduce_s=reduce_s)


def _bytes(source: Source, op: Op, nan_policy: NanPolicy) -> int:
    """The bytes of memory that the call needs for a source: the source itself unless it is in memory, and NumPy's
    intermediate arrays."""
    dtype = source.dtype
    own = 0 if isinstance(source, ArraySource) else 1
    widening = 1 if dtype.is_float else 8 // dtype.itemsize
    temporary = widening if op.terms in (Terms.PRODUCTS, Terms.MOMENTS) or op.magnitudes else 0
    omitted = 1 + 8 // dtype.itemsize if dtype.is_float and nan_policy is NanPolicy.OMIT else 0
    return (own + temporary + omitted) * source.count * dtype.itemsize


def _pairs(
    x: NDArray[Any], y: NDArray[Any], operands: Operands, nan_policy: NanPolicy
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Both arrays. With the policy OMIT, pairs with a NaN are left out. Raises InvalidInput for a NaN where the policy
    is RAISE."""
    first, second = (operand.dtype for operand in operands.both)
    if first.is_float and nan_policy is NanPolicy.RAISE:
        refuse_nan(0, x, first)
        refuse_nan(0, y, second, "other element")
    elif first.is_float and nan_policy is NanPolicy.OMIT:
        kept = ~(is_nan(x, first) | is_nan(y, second))
        return x[kept], y[kept]
    return x, y


Call = Callable[[NDArray[Any], "type[np.integer[Any]] | None"], Any]
"""NumPy's answer for an array; integers are squared and made positive in the given 64 bits, not in their own width."""


def _compared(x: NDArray[Any], wide: "type[np.integer[Any]] | None") -> NDArray[Any]:
    return widened(x, dtype_of(x.dtype)) if wide is None else x.astype(wide)


_CALLS: Mapping[str, Call] = MappingProxyType(
    {
        "sum": lambda x, wide: np.sum(x),
        "mean": lambda x, wide: np.mean(x),
        "prod": lambda x, wide: np.prod(x),
        "min": lambda x, wide: np.min(x),
        "max": lambda x, wide: np.max(x),
        "argmin": lambda x, wide: np.argmin(x),
        "argmax": lambda x, wide: np.argmax(x),
        "sum_squares": lambda x, wide: np.sum(np.square(x, dtype=wide)),
        "norm1": lambda x, wide: np.sum(np.abs(x, dtype=wide)),
        "norm2": lambda x, wide: np.sqrt(np.sum(np.square(x, dtype=wide))),
        "norm_inf": lambda x, wide: np.max(np.abs(x)) if wide is None else max(abs(int(x.min())), abs(int(x.max()))),
        "count_nonzero": lambda x, wide: np.count_nonzero(x),
        "count": lambda x, wide: x.size,
        "ptp": lambda x, wide: np.ptp(x) if wide is None else int(x.max()) - int(x.min()),
        "histogram": lambda x, wide: np.histogram(_compared(x, wide), [-np.inf, np.inf])[0][0],
        "any": lambda x, wide: np.any(x),
        "nunique": lambda x, wide: np.unique(widened(x, dtype_of(x.dtype))).size,
        "all": lambda x, wide: np.all(x),
    }
)
_WIDE: Mapping[Kind, "type[np.integer[Any]] | None"] = MappingProxyType(
    {Kind.FLOAT: None, Kind.INT: np.int64, Kind.UINT: np.uint64, Kind.BOOL: np.uint64}
)


def _value(op: Op, operands: Operands, x: NDArray[Any], y: NDArray[Any] | None) -> Value:
    """NumPy's answer as a Python value of the result dtype."""
    dtype, result = operands.source.dtype, operands.result_dtype(op)
    if y is not None:
        kinds = (x.dtype.kind, y.dtype.kind)
        wide = DTYPES[result].numpy if result in DTYPES else np.dtype(np.int64 if "i" in kinds else np.uint64)
        value = np.dot(x.astype(wide, copy=False), y.astype(wide, copy=False))
    elif op.selects:
        (q,), method = op.parameters.each_q, str(op.parameters.method)
        value = np.quantile(widened(x, dtype) if dtype.kind is not Kind.BOOL else x.view(np.uint8), q, method=method)  # type: ignore[call-overload]
    elif op.ddof:
        value = (np.var if op.finish is Finish.VARIANCE else np.std)(x, ddof=operands.ddof)
    else:
        value = _CALLS[op.name](x, _WIDE[dtype.kind])
    if result == "bool":
        return bool(value)
    return float(value) if result in DTYPES and DTYPES[result].is_float else int(value)
