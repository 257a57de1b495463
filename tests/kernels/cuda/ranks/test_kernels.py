"""Keys on a GPU stand for the elements that the keys on a CPU stand for."""

import numpy as np
import pytest

from warpfold.kernels.aggregates.quantile import Quantile
from warpfold.kernels.cuda.ranks.kernels import elements_of
from warpfold.kernels.dtypes import DTYPES
from warpfold.kernels.ops import op_named


@pytest.mark.parametrize("name", DTYPES)
def test_neighbouring_keys_are_those_of_neighbouring_elements(name: str) -> None:
    dtype, middle = DTYPES[name], 1 << 8 * DTYPES[name].itemsize - 1
    keys = np.arange(2) if name == "bool" else np.arange(middle - 6, middle + 6, dtype=np.uint64)  # about the zeros
    on_cpu = Quantile(op_named("median"), dtype).keys_of(elements_of(keys, dtype))
    assert np.diff(on_cpu).tolist() == [1] * (keys.size - 1)
