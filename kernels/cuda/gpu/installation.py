"""The installed parts of CUDA, and whether they fit the driver, for people who set a machine up."""

from dataclasses import dataclass

from warpfold.kernels.errors import Unavailable


@dataclass(frozen=True, slots=True)
class Installation:
    """CuPy's version, that of the CUDA runtime it brings, the newest that the driver serves, and how many devices it
    shows. CUDA versions as 1000 · major + 10 · minor."""

    cupy: str
    runtime: int
    driver: int
    devices: int

    @property
    def fits(self) -> bool:
        """Whether the driver is new enough: minor versions of one major version are compatible."""
        return self.runtime // 1000 <= self.driver // 1000


def look() -> Installation:
    """Open the runtime, in this process. Raises Unavailable if CuPy is missing or no device can be opened."""
    try:
        import cupy
    except ImportError as error:
        raise Unavailable(f"CuPy cannot be loaded: {error}") from error
    runtime = cupy.cuda.runtime
    try:
        versions = runtime.runtimeGetVersion(), runtime.driverGetVersion()
        return Installation(cupy.__version__, *versions, devices=runtime.getDeviceCount())
    except (runtime.CUDARuntimeError, RuntimeError) as error:
        raise Unavailable(f"no device can be opened: {error}") from error


def nccl_version() -> str:
    """The version of NCCL, "2.27.7". Raises Unavailable if CuPy cannot load it."""
    try:
        from cupy.cuda import nccl

        version = int(nccl.get_version())
    except (ImportError, AttributeError, RuntimeError) as error:
        raise Unavailable(f"NCCL cannot be loaded: {error}") from error
    return f"{version // 10_000}.{version // 100 % 100}.{version % 100}"  # NCCL_VERSION_CODE since 2.9
