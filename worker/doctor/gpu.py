"""Checks what a GPU needs: its driver, the CUDA libraries, the compiler and NCCL."""

from collections.abc import Iterator

from warpfold.kernels.cuda.compile import nvrtc_version
from warpfold.kernels.cuda.gpu.installation import look, nccl_version
from warpfold.kernels.errors import Unavailable
from warpfold.kernels.machine.extras import install
from warpfold.worker.doctor.finding import Finding, absent, broken, poor, well

_INSTALL = f"{install('cuda13', 'cuda12')}; the first needs driver 580 or newer"


def look_at_gpus() -> Iterator[Finding]:
    """The findings from the driver upwards. Without a driver the rest is not checked."""
    driver = _driver()
    yield driver
    if driver.verdict != "ok":
        return
    cuda = _cuda()
    yield cuda
    yield _nvrtc()
    if cuda.verdict == "ok":
        yield _nccl()


def _driver() -> Finding:
    try:
        import pynvml
    except ImportError:
        return absent("driver", "nvidia-ml-py is not installed: GPUs are not looked for", f"for GPU slots: {_INSTALL}")
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError as error:
        return absent(
            "driver", f"no NVIDIA driver ({error}): there are CPU slots only", "for GPU slots install NVIDIA's driver"
        )
    try:
        version, count = pynvml.nvmlSystemGetDriverVersion(), pynvml.nvmlDeviceGetCount()
        names = [str(pynvml.nvmlDeviceGetName(pynvml.nvmlDeviceGetHandleByIndex(index))) for index in range(count)]
    except pynvml.NVMLError as error:
        return broken("driver", f"it does not answer: {error}", "look at `nvidia-smi` and at the kernel's log")
    finally:
        pynvml.nvmlShutdown()
    if not names:
        return poor("driver", f"{version}, without a GPU", "check CUDA_VISIBLE_DEVICES and the container's devices")
    return well("driver", f"{version}; {', '.join(names)}")


def _cuda() -> Finding:
    try:
        runtime = look()
    except Unavailable as error:
        return broken("cuda", str(error), _INSTALL)
    versions = (
        f"CuPy {runtime.cupy}, runtime {_dotted(runtime.runtime)}, driver for up to {_dotted(runtime.driver)}, "
        f"{runtime.devices} device(s)"
    )
    if not runtime.fits:
        remedy = "the runtime is newer than the driver: install the extra of the driver's version"
        return broken("cuda", versions, remedy)
    return well("cuda", versions)


def _nvrtc() -> Finding:
    try:
        return well("nvrtc", f"NVRTC {nvrtc_version()}")
    except Unavailable as error:
        return broken("nvrtc", str(error), _INSTALL)


def _nccl() -> Finding:
    try:
        return well("nccl", f"NCCL {nccl_version()}")
    except Unavailable as error:
        return poor("nccl", str(error), "only jobs over several GPUs need it; the CUDA extras bring it")


def _dotted(version: int) -> str:
    return f"{version // 1000}.{version % 1000 // 10}"
