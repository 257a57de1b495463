"""Values of reductions in Python's integers, each rounded once, which those of a GPU have to equal bit for bit."""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tests.support.kernels.exact_on_host import portable
from warpfold.kernels.cuda.exact import SumKind
from warpfold.kernels.cuda.exact.finishing import FINISHED_OPS
from warpfold.kernels.dtypes import DType
from warpfold.kernels.exact import finish
from warpfold.kernels.ops import OPS

Array = NDArray[Any]
REDUCED = [name for name in FINISHED_OPS if name != "dot"]


def expected(name: str, dtype: DType, *arrays: Array, ddof: int = 0) -> float:
    """The value in Python's integers."""
    states = portable(FINISHED_OPS[name].kind, *(np.ascontiguousarray(array).reshape(-1) for array in arrays))
    count = states[0].count
    if FINISHED_OPS[name].kind is SumKind.MOMENTS:
        if count <= ddof:
            return math.nan
        values, squares = states
        return (finish.variance if name == "var" else finish.deviation)(values, squares, ddof, dtype)
    if name == "mean" and not count:
        return math.nan
    return float(finish.value_of(OPS[name], states[0], dtype.name))


def same(values: Any, wanted: Array) -> None:
    """Both have the same shape and the same values, bit for bit; NaNs are alike."""
    assert values.shape == wanted.shape
    assert [float(x).hex() for x in values.reshape(-1)] == [float(x).hex() for x in wanted.reshape(-1)]
