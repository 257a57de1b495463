"""The C++ names of element types."""

from warpfold.kernels.dtypes import DType, Kind


def element(dtype: DType) -> str:
    """The name of the element type in `include/elements.cuh`."""
    return "boolean" if dtype.kind is Kind.BOOL else dtype.name
