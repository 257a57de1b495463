"""Values of reductions in Python's integers, each rounded once, which those of a GPU have to equal bit for bit."""

import math
from functools import cache
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


class Exact:
    """The elements of one value, or the pairs of one product: what each op comes to. All ops share the exact states,
    which take longer than any rounding."""

    def __init__(self, *arrays: Array) -> None:
        self.arrays = tuple(np.ascontiguousarray(array).reshape(-1) for array in arrays)
        self._portable = cache(lambda kind: portable(kind, *self.arrays))

    def value(self, name: str, dtype: DType, ddof: int = 0) -> float:
        """The value in Python's integers."""
        kind = FINISHED_OPS[name].kind
        if kind is SumKind.MOMENTS:
            (values,), (squares,) = (self._portable(each) for each in (SumKind.VALUES, SumKind.SQUARES))
            if values.count <= ddof:
                return math.nan
            return (finish.variance if name == "var" else finish.deviation)(values, squares, ddof, dtype)
        states = self._portable(kind)
        if name == "mean" and not states[0].count:
            return math.nan
        return float(finish.value_of(OPS[name], states, dtype.name))


def expected(name: str, dtype: DType, *arrays: Array, ddof: int = 0) -> float:
    """The value of one op in Python's integers."""
    return Exact(*arrays).value(name, dtype, ddof)


def same(values: Any, wanted: Array) -> None:
    """Both have the same shape and the same values, bit for bit; NaNs are alike."""
    assert values.shape == wanted.shape
    assert [float(x).hex() for x in values.reshape(-1)] == [float(x).hex() for x in wanted.reshape(-1)]
