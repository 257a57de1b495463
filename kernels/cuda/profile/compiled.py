"""What the compiler knows of a strategy's kernels, without a GPU."""

from warpfold.kernels.catalog import backends_for
from warpfold.kernels.cuda.compile import Binary, compile_unit
from warpfold.kernels.cuda.profile.records import KernelRecord
from warpfold.kernels.cuda.strategies.registry import cuda_strategies
from warpfold.kernels.cuda.strategies.strategy import CudaStrategy, PlannedKernel
from warpfold.kernels.dtypes import DType
from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.ops import Op


def claimed(strategy: str, op: Op, dtype: DType) -> CudaStrategy:
    """The strategy of that name; InvalidInput if it does not compute `op` of `dtype` on a GPU."""
    if "cuda" not in backends_for(op, dtype, strategy, dtype if op.sources == 2 else None):
        raise InvalidInput(f"strategy {strategy!r} does not compute {op.name} of {dtype.name} on a GPU", "strategies")
    return cuda_strategies()[strategy]


def compiled_kernels(strategy: str, op: Op, dtype: DType, arch: str) -> tuple[KernelRecord, ...]:
    """The kernels that a strategy launches for an op of `dtype`, as compiled for `arch` ("sm_90"). Raises InvalidInput
    or Unavailable saying why there are none."""
    planned = claimed(strategy, op, dtype).planned(op, dtype, arch)
    return tuple(_record(kernel, compile_unit(kernel.unit, arch)) for kernel in planned)


def _record(planned: PlannedKernel, binary: Binary) -> KernelRecord:
    resources = next(row for row in binary.resources if row.kernel == planned.name)
    return KernelRecord(
        name=planned.name,
        registers=resources.registers,
        static_shared=resources.shared,
        dynamic_shared=planned.shared,
        stack=resources.stack,
        spill_stores=resources.spill_stores,
        spill_loads=resources.spill_loads,
        threads=planned.threads,
    )
