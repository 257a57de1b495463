"""A GPU that is ready to run kernels of ours: its limits, its stream, and modules that are loaded once.

This is how a `Unit` becomes a running kernel:

    gpu = Gpu(0)
    kernel = gpu.kernel(Unit(path, ("fill<float>",)), "fill<float>")
    kernel(grid=132, block=256, args=(array, np.uint64(array.size)))
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import RLock
from typing import Any

from warpfold.kernels.cuda.compile import Binary, Unit, arch_of, compile_unit
from warpfold.kernels.cuda.gpu.failures import cuda_errors
from warpfold.kernels.errors import Unavailable
from warpfold.kernels.machine.extras import install
from warpfold.kernels.machine.preparation import Preparation


@dataclass(frozen=True, slots=True)
class Kernel:
    """A loaded kernel. `function` is CuPy's; arguments are CuPy arrays and NumPy scalars of the exact C types."""

    name: str
    function: Any
    shared_limit: int

    def __call__(self, grid: int, block: int, args: Sequence[Any], shared: int = 0) -> None:
        """Start `grid` × `block` threads with `shared` bytes of dynamic shared memory on the current stream."""
        with cuda_errors(self.name):
            self.allow(shared)
            self.function((grid,), (block,), tuple(args), shared_mem=shared)

    def allow(self, shared: int) -> None:
        """Ask for so many bytes of dynamic shared memory a block: more than 48 KiB has to be asked for."""
        if shared > 48 * 1024 and self.function.max_dynamic_shared_size_bytes < shared:
            self.function.max_dynamic_shared_size_bytes = shared

    def blocks_per_multiprocessor(self, block: int, shared: int = 0) -> int:
        """How many blocks of this shape one multiprocessor holds at a time."""
        from cupy.cuda import driver

        with cuda_errors(self.name):
            bind_context()
            self.allow(shared)
            return int(driver.occupancyMaxActiveBlocksPerMultiprocessor(self.function.kernel.ptr, block, shared))


def bind_context() -> None:
    """Make the context of CuPy's current device current for the driver. A thread that has not called CUDA's runtime has
    no context, and the driver's own calls need a context."""
    from cupy.cuda import driver, runtime

    if not driver.ctxGetCurrent():
        runtime.free(0)  # the cheapest call that makes the context of the device current


class Gpu:
    """The GPU that CUDA numbers `index` (within CUDA_VISIBLE_DEVICES, which CUDA itself applies).

    `arch` is "sm_90" for an H200; `multiprocessors` counts its streaming multiprocessors; `memory` and
    `shared_per_block` are in bytes, the latter the most that a block may ask for. Compiled code is kept in `cache`.
    Work goes to `stream`; use `with gpu.active():` around it. `side` is for work that runs beside it (`aside`).
    `preparation` counts the time of compiling and loading.
    Raises Unavailable if there is no CuPy, driver or such device.
    """

    def __init__(self, index: int = 0, cache: Path | None = None) -> None:
        try:
            import cupy
        except ImportError as error:
            raise Unavailable(f"CuPy is not installed ({error}): {install('cuda13', 'cuda12')}") from error
        try:
            count = cupy.cuda.runtime.getDeviceCount()
        except cupy.cuda.runtime.CUDARuntimeError as error:
            raise Unavailable(f"no CUDA device can be used: {error}") from error
        if not 0 <= index < count:
            raise Unavailable(f"there is no CUDA device {index}; CUDA shows {count}")
        self.index = index
        self.cache = cache
        self.preparation = Preparation()
        self._loading = RLock()
        self._modules: dict[tuple[Unit, bool], tuple[Binary, Any]] = {}
        self._kernels: dict[tuple[Unit, str, bool], Kernel] = {}
        with cuda_errors(f"device {index}"):
            properties = cupy.cuda.runtime.getDeviceProperties(index)
            self.name: str = properties["name"].decode()
            self.compute_capability = f"{properties['major']}.{properties['minor']}"
            self.arch = arch_of(self.compute_capability)
            self.multiprocessors = int(properties["multiProcessorCount"])
            self.memory = int(properties["totalGlobalMem"])
            self.shared_per_block = int(properties["sharedMemPerBlockOptin"])
            with cupy.cuda.Device(index):
                self.stream = cupy.cuda.Stream(non_blocking=True)
                self.side = cupy.cuda.Stream(non_blocking=True)

    def active(self) -> "_Active":
        """A context in which this device and its stream are current for CuPy."""
        return _Active(self)

    @contextmanager
    def aside(self) -> Iterator[None]:
        """A context whose launches begin after what is on the GPU's stream, and run beside what comes next there,
        until `join`."""
        import cupy

        follow(self.side, cupy.cuda.Event(disable_timing=True), self.stream)
        with self.side:
            yield

    def join(self) -> None:
        """Have what comes next on the GPU's stream begin after the launches aside."""
        import cupy

        follow(self.stream, cupy.cuda.Event(disable_timing=True), self.side)

    def kernel(self, unit: Unit, name: str, *, cooperative: bool = False) -> Kernel:
        """The kernel `name` of `unit`, compiled and loaded at its first use.

        A `cooperative` one is launched so that all its blocks run at the same time. Raises CompileError, Unavailable
        or CudaError."""
        key = (unit, name, cooperative)
        kernel = self._kernels.get(key)
        if kernel is None:
            with self._loading:  # of many threads that begin with a kernel, one compiles it
                kernel = self._kernels.get(key) or self._loaded(unit, name, cooperative)
                self._kernels[key] = kernel
        return kernel

    def _loaded(self, unit: Unit, name: str, cooperative: bool) -> Kernel:
        with self.preparation:
            binary, module = self._module(unit, cooperative)
            with cuda_errors(name), self.active():
                function = module.get_function(binary.symbols[name])
        return Kernel(name, function, self.shared_per_block)

    def _module(self, unit: Unit, cooperative: bool) -> tuple[Binary, Any]:
        import cupy

        key = (unit, cooperative)
        if key not in self._modules:
            binary = compile_unit(unit, self.arch, self.cache)
            with cuda_errors(unit.name), self.active():
                module = cupy.RawModule(path=str(binary.path), enable_cooperative_groups=cooperative)
            self._modules[key] = (binary, module)
        return self._modules[key]

    def close(self) -> None:
        """Give back the memory and the modules on the device. The object must not be used afterwards."""
        import cupy

        with cuda_errors("close"), self.active():
            self.side.synchronize()
            self.stream.synchronize()
            self._kernels.clear()
            self._modules.clear()
            cupy.get_default_memory_pool().free_all_blocks()
            cupy.get_default_pinned_memory_pool().free_all_blocks()


def follow(later: Any, event: Any, earlier: Any) -> None:
    """Have a stream wait for what is on another one now."""
    event.record(earlier)
    later.wait_event(event)


class _Active:
    def __init__(self, gpu: Gpu) -> None:
        import cupy

        self._device = cupy.cuda.Device(gpu.index)
        self._stream = gpu.stream

    def __enter__(self) -> None:
        self._device.__enter__()
        self._stream.__enter__()

    def __exit__(self, *error: object) -> None:
        self._stream.__exit__(*error)
        self._device.__exit__(*error)
