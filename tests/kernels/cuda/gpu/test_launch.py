"""The errors of a machine without a GPU, driver or CuPy."""

import importlib.util
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier, RLock

import pytest

from warpfold.kernels.cuda.compile import Unit
from warpfold.kernels.cuda.gpu.device import visible_devices
from warpfold.kernels.cuda.gpu.launch import Gpu, Kernel
from warpfold.kernels.errors import Unavailable

NO_CUPY = importlib.util.find_spec("cupy") is None


def test_without_cupy_the_backend_is_unavailable_and_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cupy", None)  # as if it were not installed
    with pytest.raises(Unavailable, match=r"CuPy is not installed .*pip install '\.\[cuda13\]'"):
        Gpu(0)


@pytest.mark.skipif(bool(visible_devices()), reason="this machine has a GPU")
def test_without_a_gpu_none_is_visible() -> None:
    assert visible_devices() == ()


@pytest.mark.skipif(NO_CUPY or bool(visible_devices()), reason="needs CuPy and no GPU")
def test_without_a_driver_the_backend_is_unavailable() -> None:
    with pytest.raises(Unavailable, match="no CUDA device can be used"):
        Gpu(0)


def test_the_catalogue_and_the_compiler_need_no_gpu_library() -> None:
    code = (
        "import sys; sys.modules['cupy'] = None\n"
        "from warpfold.kernels.catalog import strategies\n"
        "import warpfold.kernels.cuda.compile, warpfold.kernels.cuda.backend\n"
        "assert any(row.backend == 'cuda' for row in strategies())\n"
        "assert 'cuda.bindings' not in sys.modules and 'cuda.core' not in sys.modules\n"
    )
    import subprocess

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


class SlowToLoad(Gpu):
    """A GPU without a device, which notes the kernels that it loads."""

    def __init__(self) -> None:
        self._kernels, self._loading = {}, RLock()
        self.loaded: list[str] = []

    def _loaded(self, unit: Unit, name: str, cooperative: bool) -> Kernel:
        time.sleep(0.02)
        self.loaded.append(name)
        return Kernel(name, None, 0)


def test_threads_that_begin_with_one_kernel_load_it_once() -> None:
    gpu, together = SlowToLoad(), Barrier(8)

    def begin(number: int) -> Kernel:
        together.wait(10)
        return gpu.kernel(Unit(Path("a.cu"), ("a", "b")), "ab"[number % 2])

    with ThreadPoolExecutor(8) as pool:
        kernels = list(pool.map(begin, range(8)))
    assert sorted(gpu.loaded) == ["a", "b"]
    assert [kernel.name for kernel in kernels] == ["a", "b"] * 4
