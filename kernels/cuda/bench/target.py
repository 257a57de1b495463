"""A GPU backend as a benchmark target."""

from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from warpfold.kernels.backend import Device
from warpfold.kernels.bench.ceiling import Ceiling, CeilingGauge
from warpfold.kernels.bench.workload import Workload
from warpfold.kernels.catalog import resolve
from warpfold.kernels.cuda.backend import CudaBackend
from warpfold.kernels.cuda.bench.ceiling import measure_ceiling
from warpfold.kernels.cuda.bench.observer import NvmlObserver
from warpfold.kernels.cuda.bench.shaped import DeviceShape
from warpfold.kernels.cuda.bench.timer import CudaTimer
from warpfold.kernels.cuda.gpu.failures import cuda_errors
from warpfold.kernels.cuda.gpu.launch import Gpu
from warpfold.kernels.cuda.staging.stager import Stager
from warpfold.kernels.cuda.strategies.registry import cuda_strategies
from warpfold.kernels.dtypes import DType
from warpfold.kernels.ops import op_named
from warpfold.kernels.source import Source
from warpfold.kernels.studies.shapes import CaseShape


class CudaTarget:
    """The GPU that `backend` reduces on."""

    def __init__(self, backend: CudaBackend) -> None:
        import cupy

        self._backend, self._gpu = backend, backend.gpu
        self._stager = Stager(self._gpu)
        self._gauge = CeilingGauge(lambda: measure_ceiling(self._gpu, self.observer, self._cache_bytes))
        with cuda_errors("device properties"):
            properties = cupy.cuda.runtime.getDeviceProperties(self._gpu.index)
            self._cache_bytes = int(properties["l2CacheSize"])
            self._pci_bus_id = str(cupy.cuda.runtime.deviceGetPCIBusId(self._gpu.index))

    @property
    def device(self) -> Device:
        return self._backend.device

    def active(self) -> AbstractContextManager[None]:
        return self._gpu.active()

    @cached_property
    def timer(self) -> CudaTimer:
        with self._gpu.active():
            return CudaTimer(self._gpu, self._cache_bytes)

    @cached_property
    def observer(self) -> NvmlObserver:
        return NvmlObserver(self._pci_bus_id)

    @property
    def ceiling(self) -> Ceiling:
        with self._gpu.active():
            return self._gauge.read()

    def load(self, source: Source) -> "DeviceArray":
        self._give_back()
        array = self._stager.whole(source, None)
        with cuda_errors("loading"):
            self._gpu.stream.synchronize()
        return DeviceArray(self._gpu, array, source.dtype)

    def load_shape(self, source: Source, shape: CaseShape, seed: int) -> DeviceShape:
        self._give_back()
        return DeviceShape.of(self._gpu, self._stager, source, shape, seed)

    def _give_back(self) -> None:
        """Free what arrays of other sizes left in the pool."""
        import cupy

        with cuda_errors("memory of the device"):
            cupy.get_default_memory_pool().free_all_blocks()


@dataclass(frozen=True, eq=False)
class DeviceArray:
    """Elements in the GPU's memory, shape (n,), held as `kernels.cuda.staging.stager.carrier(dtype)`."""

    gpu: Gpu
    elements: Any
    dtype: DType

    def workload(self, op: str, strategy: str) -> Workload:
        row = op_named(op)
        chosen = cuda_strategies()[resolve(row, self.dtype, strategy, "cuda")]
        return chosen.workload(self.gpu, row, self.dtype, self.elements)
