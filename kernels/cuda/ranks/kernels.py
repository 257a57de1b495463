"""The kernels that look for elements of given ranks, and what their keys stand for."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from warpfold.kernels.aggregates.quantile import Quantile, Ranks
from warpfold.kernels.cuda.compile import Unit
from warpfold.kernels.cuda.elements import element
from warpfold.kernels.cuda.gpu.launch import Gpu, Kernel
from warpfold.kernels.dtypes import DTYPES, DType, Kind
from warpfold.kernels.ops import Op

SOURCE = Path(__file__).parent.parent / "sources" / "ranks.cu"

COUNT_DIGITS = "count_digits"
SHORT_ROWS = "select_in_short_rows"
ROWS = "select_in_rows"


def ranks_unit(dtype: DType) -> Unit:
    """The kernels for elements of `dtype`."""
    return Unit(SOURCE, tuple(name_of(name, dtype) for name in (COUNT_DIGITS, SHORT_ROWS, ROWS)))


def ranks_units() -> Iterator[Unit]:
    """All units, for the compile matrix."""
    return map(ranks_unit, DTYPES.values())


def name_of(name: str, dtype: DType) -> str:
    """The kernel called `name` for elements of `dtype`, as its unit names it."""
    return f"{name}<{element(dtype)}>"


def kernel(gpu: Gpu, name: str, dtype: DType) -> Kernel:
    """The kernel called `name` for elements of `dtype`."""
    return gpu.kernel(ranks_unit(dtype), name_of(name, dtype))


def keys_of(elements: NDArray[Any], dtype: DType) -> NDArray[Any]:
    """The keys of `include/sorting_keys.cuh` of elements that are no NaN, in the same shape."""
    width = 8 * dtype.itemsize
    word = np.dtype(f"uint{width}").type
    sign, bits = word(1 << (width - 1)), elements.view(word)
    if dtype.is_float:
        bits = np.where(bits & sign, ~bits, bits | sign)
    elif dtype.kind is Kind.INT:
        bits = bits ^ sign
    return np.asarray(bits)


def elements_of(keys: NDArray[Any], dtype: DType) -> NDArray[Any]:
    """The elements of `dtype` that have these keys of `include/sorting_keys.cuh`, in the same shape."""
    width = 8 * dtype.itemsize
    word = np.dtype(f"uint{width}").type
    sign, bits = word(1 << (width - 1)), keys.astype(word)
    if dtype.is_float:
        bits = np.where(bits & sign, bits ^ sign, ~bits)
    elif dtype.kind is Kind.INT:
        bits ^= sign
    return bits.view(dtype.numpy)


def values_of(keys: NDArray[Any], ranks: Ranks, nans: NDArray[np.bool_] | None, op: Op, dtype: DType) -> NDArray[Any]:
    """The values of groups, of which `keys` has those of the GPU in the sorted ranks, shape (groups, ranks), and `nans`
    are NaN."""
    aggregate = Quantile(op, dtype)
    return aggregate.values(aggregate.keys_of(elements_of(keys, dtype)), ranks, nans)
