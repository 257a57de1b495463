"""Arrays of the GPU libraries themselves, on the GPU and on the host, as the client takes them."""

import json
import subprocess
import sys
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from warpfold.client.arrays import as_numpy
from warpfold.worker.gpu_lock import gpu_count


@pytest.fixture(autouse=True)
def _a_gpu() -> None:
    if gpu_count() == 0:
        pytest.skip("no GPU on this machine")


NUMBERS = np.array([[1.5, -2.0, 3.25], [0.0, 100.0, -1.0]], dtype=np.float32)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int8", "uint16", "int64", "bool"])
def test_arrays_of_cupy_come_to_the_host(dtype: str) -> None:
    cupy = pytest.importorskip("cupy")
    magnitudes = np.abs(NUMBERS).astype(dtype)
    array = as_numpy(cupy.asarray(magnitudes).T)
    assert array.dtype == magnitudes.dtype
    assert array.tolist() == magnitudes.T.tolist()


@pytest.mark.parametrize("device", ["cpu", "cuda"])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64", "int32", "bool"])
def test_tensors_of_pytorch_come_to_the_host(device: str, dtype: str) -> None:
    torch: Any = pytest.importorskip("torch")
    tensor = torch.tensor(NUMBERS.tolist(), device=device).to(getattr(torch, dtype)).T
    array = as_numpy(tensor)
    expected = ml_dtypes.bfloat16 if dtype == "bfloat16" else np.dtype(dtype)
    assert array.dtype == expected
    assert array.astype(np.float64).tolist() == tensor.to(torch.float64).cpu().tolist()


def test_a_tensor_that_is_learned_is_taken_as_it_is() -> None:
    torch: Any = pytest.importorskip("torch")
    assert as_numpy(torch.ones(3, requires_grad=True)).tolist() == [1, 1, 1]


def test_the_doctor_finds_driver_cuda_compiler_and_nccl() -> None:
    done = subprocess.run([sys.executable, "-m", "warpfold.worker.doctor"], capture_output=True, text=True, check=False)
    by_part = {finding["part"]: finding for finding in map(json.loads, done.stdout.splitlines())}
    for part in ("driver", "cuda", "nvrtc", "nccl"):
        assert by_part[part]["verdict"] == "ok", by_part[part]
