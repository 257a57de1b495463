"""What the compiler's options promise: nothing fused, nothing flushed, everything rounded correctly."""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from warpfold.kernels.cuda.compile import Unit
from warpfold.kernels.cuda.gpu.launch import Gpu

SOURCE = """
extern "C" __global__ void product_sum(const float* a, const float* b, const float* c, float* out) {
    out[threadIdx.x] = a[threadIdx.x] * b[threadIdx.x] + c[threadIdx.x];
}
extern "C" __global__ void quotient_root(const float* a, const float* b, const float*, float* out) {
    out[threadIdx.x] = sqrtf(a[threadIdx.x] / b[threadIdx.x]);
}
"""


def launch(gpu: Gpu, folder: Path, kernel: str, *arrays: NDArray[np.float32]) -> NDArray[Any]:
    import cupy

    path = folder / "arithmetic.cu"
    path.write_text(SOURCE)
    out = cupy.empty(256, dtype=np.float32)
    unit = Unit(path, ("product_sum", "quotient_root"))
    gpu.kernel(unit, kernel)(1, 256, (*(cupy.asarray(array) for array in arrays), out))
    return np.asarray(out.get())


def test_a_product_is_rounded_before_it_is_added(gpu: Gpu, tmp_path: Path) -> None:
    random = np.random.default_rng(1)
    a, b = random.standard_normal((2, 256)).astype(np.float32)
    c = -(a * b)
    assert np.array_equal(launch(gpu, tmp_path, "product_sum", a, b, c), a * b + c)  # a fused one would leave the error


def test_subnormals_are_kept(gpu: Gpu, tmp_path: Path) -> None:
    random = np.random.default_rng(2)
    a = (random.random(256) * 2.0**-130).astype(np.float32)
    ones, zero = np.ones(256, np.float32), np.zeros(256, np.float32)
    assert np.array_equal(launch(gpu, tmp_path, "product_sum", a, ones, zero), a)


def test_division_and_square_root_are_correctly_rounded(gpu: Gpu, tmp_path: Path) -> None:
    random = np.random.default_rng(3)
    a, b = random.random((2, 256)).astype(np.float32) + np.float32(0.5)
    assert np.array_equal(launch(gpu, tmp_path, "quotient_root", a, b, a), np.sqrt(a / b))
