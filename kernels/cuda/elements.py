"""The names of element types in CUDA C++, and the NumPy dtypes in which CuPy holds them."""

import numpy as np

from warpfold.kernels.dtypes import DType, Kind


def element(dtype: DType) -> str:
    """The name of the element type in `include/elements.cuh`."""
    return "boolean" if dtype.kind is Kind.BOOL else dtype.name


def carrier(dtype: DType) -> "np.dtype[np.generic]":
    """The NumPy dtype in which CuPy holds elements of `dtype`: bfloat16 travels as its bits."""
    return dtype.numpy if dtype.native else np.dtype(f"uint{8 * dtype.itemsize}")
