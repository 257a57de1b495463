"""The GPUs of this machine, and the names and versions of them and their software."""

from typing import Any

from warpfold.kernels.backend import Device
from warpfold.kernels.cuda.compile import nvrtc_version
from warpfold.kernels.cuda.gpu.failures import cuda_errors
from warpfold.kernels.cuda.gpu.launch import Gpu
from warpfold.kernels.errors import CudaError


def describe(gpu: Gpu) -> Device:
    """`gpu` as results name it, with the versions of driver, runtime and libraries in use."""
    import cupy
    from cuda.bindings import driver

    with cuda_errors("device properties"):
        versions = (
            ("driver", driver_release()),
            ("cuda_driver", _dotted(cupy.cuda.runtime.driverGetVersion())),
            ("cuda_runtime", _dotted(cupy.cuda.runtime.runtimeGetVersion())),
            ("nvrtc", nvrtc_version()),
            ("cupy", cupy.__version__),
        )
    return Device(
        backend="cuda",
        name=gpu.name,
        index=gpu.index,
        memory_bytes=gpu.memory,
        cores=gpu.multiprocessors,
        compute_capability=gpu.compute_capability,
        uuid=_uuid(driver, _checked(driver.cuDeviceGet(gpu.index))),
        versions=tuple((name, version) for name, version in versions if version is not None),
    )


def visible_devices() -> tuple[Device, ...]:
    """The GPUs that CUDA shows this process (it applies CUDA_VISIBLE_DEVICES itself), by its numbering.

    Asks the driver alone: no context is made, no CuPy is loaded. The tuple is empty where no driver or no GPU is
    installed. Raises CudaError where the driver fails.
    """
    try:
        from cuda.bindings import driver

        status, *_ = driver.cuInit(0)
    except (ImportError, RuntimeError):
        return ()
    if status in (driver.CUresult.CUDA_ERROR_NO_DEVICE, driver.CUresult.CUDA_ERROR_STUB_LIBRARY):
        return ()
    _checked((status,))
    version = (("cuda_driver", _dotted(_checked(driver.cuDriverGetVersion()))),)
    return tuple(_seen(driver, index, version) for index in range(_checked(driver.cuDeviceGetCount())))


def _seen(driver: Any, index: int, versions: tuple[tuple[str, str], ...]) -> Device:
    handle = _checked(driver.cuDeviceGet(index))
    kinds = driver.CUdevice_attribute

    def attribute(name: str) -> int:
        kind = getattr(kinds, f"CU_DEVICE_ATTRIBUTE_{name}")
        return int(_checked(driver.cuDeviceGetAttribute(kind, handle)))

    return Device(
        backend="cuda",
        name=_checked(driver.cuDeviceGetName(256, handle)).split(b"\0")[0].decode(),
        index=index,
        memory_bytes=int(_checked(driver.cuDeviceTotalMem(handle))),
        cores=attribute("MULTIPROCESSOR_COUNT"),
        compute_capability=f"{attribute('COMPUTE_CAPABILITY_MAJOR')}.{attribute('COMPUTE_CAPABILITY_MINOR')}",
        uuid=_uuid(driver, handle),
        versions=versions,
    )


def _checked(answer: tuple[Any, ...]) -> Any:
    """The value of a driver call; CudaError where it failed."""
    status, *values = answer
    if int(status) != 0:
        raise CudaError(f"the CUDA driver says {status.name}")
    return values[0] if values else None


def driver_release() -> str | None:
    """The driver's own version ("580.159.04"), which only NVML reports; None without NVML."""
    try:
        import pynvml
    except ImportError:
        return None
    try:
        pynvml.nvmlInit()
        try:
            return str(pynvml.nvmlSystemGetDriverVersion())
        finally:
            pynvml.nvmlShutdown()
    except pynvml.NVMLError:
        return None


def _uuid(driver: Any, handle: Any) -> str:
    """The UUID of a device as nvidia-smi prints it: GPU-8-4-4-4-12 hexadecimal digits.

    The driver is asked, because CuPy's device properties end the identifier at its first byte of zero.
    """
    text = bytes(_checked(driver.cuDeviceGetUuid(handle)).bytes).hex()
    return f"GPU-{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


def _dotted(version: int) -> str:
    """13000 → "13.0"."""
    return f"{version // 1000}.{version % 1000 // 10}"
