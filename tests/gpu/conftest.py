"""These tests need a GPU; without one each is skipped and says why."""

from collections.abc import Iterator

import pytest

from tests.support.warm_children import real_children
from warpfold.kernels.cuda.backend import CudaBackend
from warpfold.kernels.cuda.gpu.launch import Gpu
from warpfold.kernels.errors import Unavailable


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
