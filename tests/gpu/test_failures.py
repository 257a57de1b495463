"""What the driver reports reaches the caller as an error of ours."""

import subprocess
import sys
from pathlib import Path

from warpfold.kernels.cuda.backend import CudaBackend

CRASH = """
import sys
from pathlib import Path
import numpy as np
from warpfold.kernels.cuda.backend import CudaBackend
from warpfold.kernels.cuda.compile import Unit
from warpfold.kernels.errors import CudaError
from warpfold.kernels.source import ArraySource

path = Path(sys.argv[1])
path.write_text("__global__ void crash(int* nowhere) { *nowhere = 1; }")
backend = CudaBackend(0)
with backend.gpu.active():
    backend.gpu.kernel(Unit(path, ("crash",)), "crash")(1, 1, (np.uint64(16),))
try:
    backend.reduce(ArraySource(np.ones(5, np.float32)), "sum")
except CudaError as error:
    print("CudaError:", error, flush=True)
"""


def test_a_crashed_kernel_is_a_cuda_error_of_the_next_reduction(backend: CudaBackend, tmp_path: Path) -> None:
    # In a process of its own: the error stays with the context for good.
    done = subprocess.run(
        [sys.executable, "-c", CRASH, str(tmp_path / "crash.cu")], capture_output=True, text=True, check=False
    )
    assert "CudaError: " in done.stdout, done.stderr
    assert "IllegalAddress" in done.stdout
