"""These tests need a GPU; without one each file is imported, and skipped as a whole."""

from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from tests.support.warm_children import real_children
from warpfold.kernels.cuda.backend import CudaBackend
from warpfold.kernels.cuda.gpu.device import visible_devices
from warpfold.kernels.cuda.gpu.launch import Gpu
from warpfold.kernels.errors import Unavailable


class _Skipped(pytest.Module):
    """A file of tests whose two thousand cases no process has to make, hand on and skip one by one."""

    def collect(self) -> Iterable[pytest.Item | pytest.Collector]:
        assert self.obj is not None  # its import, which is checked everywhere
        pytest.skip("no GPU is visible", allow_module_level=True)


def pytest_pycollect_makemodule(module_path: Path, parent: pytest.Collector) -> pytest.Module | None:
    """Without a GPU the file is skipped before its tests are made."""
    if visible_devices():
        return None
    skipped: pytest.Module = _Skipped.from_parent(parent, path=module_path)
    return skipped


@pytest.fixture(scope="package", autouse=True)
def interpreters() -> Iterator[None]:
    """Children begin as in a service: no process that opens a GPU is a fork."""
    with real_children():
        yield


@pytest.fixture(scope="session")
def backend() -> Iterator[CudaBackend]:
    """The first GPU."""
    try:
        opened = CudaBackend(0)
    except Unavailable as error:
        pytest.skip(str(error))
    yield opened
    opened.close()


@pytest.fixture
def gpu(backend: CudaBackend) -> Iterator[Gpu]:
    """The first GPU with its stream current and its memory poisoned: what is not written first reads as all ones."""
    import cupy

    pool = cupy.get_default_memory_pool()

    def poisoned(size: int) -> object:
        memory = pool.malloc(size)
        if size:
            memory.memset_async(0xFF, size, cupy.cuda.get_current_stream())
        return memory

    with backend.gpu.active():
        cupy.cuda.set_allocator(poisoned)
        try:
            yield backend.gpu
        finally:
            backend.gpu.stream.synchronize()
            cupy.cuda.set_allocator(pool.malloc)
