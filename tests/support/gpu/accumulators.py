"""Exact accumulators of a GPU, and arrays in its memory."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from numpy.typing import NDArray

from warpfold.kernels.cuda.elements import carrier
from warpfold.kernels.cuda.exact import SumKind
from warpfold.kernels.cuda.exact.shapes import CHOICES, Chosen
from warpfold.kernels.dtypes import DTYPES, DType


def dtype_of(array: NDArray[Any]) -> DType:
    return next(row for row in DTYPES.values() if row.numpy == array.dtype)


def on_device(array: NDArray[Any], start: int) -> Any:
    """A copy on the current GPU that begins `start` elements after a boundary."""
    import cupy

    kept = carrier(dtype_of(array))
    room = cupy.empty(start + array.size, dtype=kept)
    room[start:] = cupy.asarray(array.view(kept))
    return room[start:]


def early_choices(least: int) -> Mapping[str, Mapping[SumKind, Chosen]]:
    """CHOICES of arrays of at least so many elements, to stand in `warpfold.kernels.cuda.exact.shapes`."""
    return {
        dtype: {kind: replace(chosen, surveyed=least) for kind, chosen in kinds.items()}
        for dtype, kinds in CHOICES.items()
    }
