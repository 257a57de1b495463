"""Packed arrays on a GPU have the values of a CPU; `tests/kernels/lowering/test_packed.py` holds those to fractions."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.support.array_files import opened
from warpfold.kernels.cpu.backend import CpuBackend
from warpfold.kernels.cuda.backend import CudaBackend
from warpfold.kernels.parts.grouping import AlongAxes

h5py: Any = pytest.importorskip("h5py")


@pytest.mark.parametrize("dtype", ["int16", "uint8", "int64", "float32", "float64"])
@pytest.mark.parametrize("op", ["sum", "mean", "min", "argmin", "sum_squares", "std"])
def test_a_packed_array_has_the_value_of_a_cpu(backend: CudaBackend, tmp_path: Path, dtype: str, op: str) -> None:
    stored = np.random.default_rng(5).integers(0, 120, (40, 30)).astype(dtype)
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file.create_dataset("x", data=stored, chunks=(7, 8)).attrs.update({"scale_factor": -0.1, "add_offset": 273.15})
    cpu = CpuBackend()
    values = [each.reduce(opened(tmp_path, "x.h5"), op).value for each in (backend, cpu)]
    assert values[0] == values[1]
    many = [each.reduce_groups(opened(tmp_path, "x.h5"), (40, 30), AlongAxes((0,)), op) for each in (backend, cpu)]
    assert many[0].listed() == many[1].listed()
