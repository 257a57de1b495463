"""Turns what CuPy and the driver raise into kernel errors."""

from collections.abc import Iterator
from contextlib import contextmanager

from warpfold.kernels.errors import CudaError, OutOfMemory

_NO_MEMORY = ("cudaErrorMemoryAllocation", "CUDA_ERROR_OUT_OF_MEMORY")


@contextmanager
def cuda_errors(doing: str) -> Iterator[None]:
    """Turn CuPy's and the driver's errors within into OutOfMemory or CudaError; `doing` goes before their text."""
    from cupy.cuda import driver, memory, runtime

    try:
        yield
    except memory.OutOfMemoryError as error:
        raise OutOfMemory(f"{doing}: {error}") from error
    except (runtime.CUDARuntimeError, driver.CUDADriverError) as error:
        text = str(error)
        if any(code in text for code in _NO_MEMORY):
            raise OutOfMemory(f"{doing}: {text}") from error
        raise CudaError(f"{doing}: {text}") from error
