"""Exact sums by the device code that was built for the host, and by the portable definition."""

import ctypes
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tests.support.kernels import on_host
from warpfold.kernels.cuda.exact import SumKind, limbs_of, states_of_limbs
from warpfold.kernels.dtypes import DType
from warpfold.kernels.exact.state import ExactState
from warpfold.kernels.ops import Terms


def states_of(
    library: ctypes.CDLL,
    dtype: DType,
    kind: SumKind,
    *arrays: NDArray[Any],
    ahead: bool = False,
    omit_nan: bool = False,
) -> tuple[ExactState, ...]:
    """The result of the device code for one array, or for two: one state, or two states for moments."""
    return states_of_limbs(kind, limbs_made(library, dtype, kind, *arrays, ahead=ahead), omit_nan=omit_nan)


def limbs_made(
    library: ctypes.CDLL, dtype: DType, kind: SumKind, *arrays: NDArray[Any], ahead: bool = False
) -> NDArray[np.int64]:
    """The total before it is a state."""
    return on_host.exact(library, dtype.name, kind, arrays, limbs_of(kind), ahead=ahead)


def portable(kind: SumKind, *arrays: NDArray[Any]) -> tuple[ExactState, ...]:
    """The result of the portable definition for the same arrays."""
    values, products = ExactState.empty(Terms.VALUES), ExactState.empty(Terms.PRODUCTS)
    match kind:
        case SumKind.MOMENTS:
            return values.add(*arrays), products.add(*arrays)
        case SumKind.PRODUCTS:
            return (products.add_products(*arrays),)
        case SumKind.SQUARES:
            return (products.add(*arrays),)
    return (values.add(*arrays, magnitudes=kind is SumKind.MAGNITUDES),)
