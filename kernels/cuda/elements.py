"""How element types are called and held on a GPU."""

import numpy as np

from warpfold.kernels.dtypes import DType, Kind


def element(dtype: DType) -> str:
    """The name of the element type in `include/elements.cuh`."""
    return "boolean" if dtype.kind is Kind.BOOL else dtype.name


def carrier(dtype: DType) -> "np.dtype[np.generic]":
    """The NumPy dtype in which CuPy holds elements of `dtype`: bfloat16 travels as the bits it is."""
    return np.dtype(np.uint16) if dtype.name == "bfloat16" else dtype.numpy
