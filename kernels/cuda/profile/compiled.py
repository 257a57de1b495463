"""What the compiler knows of a strategy's kernels, without a GPU."""

from collections.abc import Iterator
from dataclasses import dataclass

from warpfold.kernels.catalog import EXACT, backends_for
from warpfold.kernels.cuda.baselines import baselines
from warpfold.kernels.cuda.compile import Binary, Unit, compile_unit
from warpfold.kernels.cuda.exact.shapes import LARGEST_SHARED, SHAPES, Kind, exact_unit, kernel_name
from warpfold.kernels.cuda.profile.records import KernelRecord
from warpfold.kernels.cuda.strategies import CUPY, FAST, own_strategies
from warpfold.kernels.cuda.strategies.reductions import reduction_of
from warpfold.kernels.dtypes import DType
from warpfold.kernels.errors import InvalidInput, Unavailable
from warpfold.kernels.ops import OPS, Op, Terms


@dataclass(frozen=True, slots=True)
class Known:
    """A kernel of `unit` with what is known of its launch: threads a block and bytes of dynamic shared memory."""

    unit: Unit
    name: str
    threads: int
    shared: int


def check_ours(strategy: str, op: Op, dtype: DType) -> None:
    """Raises InvalidInput for what the strategy does not compute on a GPU, Unavailable where the kernels are not
    ours."""
    if "cuda" not in backends_for(op, dtype, strategy, dtype if op.sources == 2 else None):
        raise InvalidInput(f"strategy {strategy!r} does not compute {op.name} of {dtype.name} on a GPU", "strategies")
    if strategy == CUPY or strategy in baselines():
        raise Unavailable(f"the kernels of {strategy} are not ours: they choose them as they run")


def compiled_kernels(strategy: str, op: Op, dtype: DType, arch: str) -> tuple[KernelRecord, ...]:
    """The kernels that a strategy launches for an op of `dtype`, as compiled for `arch` ("sm_90"). Raises InvalidInput
    or Unavailable saying why there are none."""
    check_ours(strategy, op, dtype)
    return tuple(_record(known, compile_unit(known.unit, arch)) for known in _known(strategy, op, dtype, arch))


def _known(strategy: str, op: Op, dtype: DType, arch: str) -> Iterator[Known]:
    if strategy == EXACT and op.adds and dtype.is_float:
        kind = _kind(op)
        shape = SHAPES[dtype.name][kind].fitted(LARGEST_SHARED)
        yield Known(exact_unit(dtype), kernel_name(dtype, kind, shape), shape.threads, shape.threads * shape.shared)
        return
    if op.sources == 2:
        raise Unavailable(f"which kernels {op.name} of {dtype.name} takes is decided on a GPU")
    own = own_strategies()[FAST if strategy == EXACT else strategy]
    if not own.runs_on(arch):
        raise Unavailable(f"strategy {strategy} needs sm_{own.needs} or newer, not {arch}")
    summed = (OPS["sum"], OPS["sum_squares"]) if op.terms is Terms.MOMENTS else (op,)
    for one in summed:
        for name in own.kernels(reduction_of(one, dtype), dtype):
            yield Known(own.unit(dtype), name, own.launch.threads, 0)


def _kind(op: Op) -> Kind:
    match op.terms:
        case Terms.MOMENTS:
            return Kind.MOMENTS
        case Terms.PRODUCTS:
            return Kind.PRODUCTS if op.sources == 2 else Kind.SQUARES
    return Kind.MAGNITUDES if op.magnitudes else Kind.VALUES


def _record(known: Known, binary: Binary) -> KernelRecord:
    resources = next(row for row in binary.resources if row.kernel == known.name)
    return KernelRecord(
        name=known.name,
        registers=resources.registers,
        static_shared=resources.shared,
        dynamic_shared=known.shared,
        stack=resources.stack,
        spill_stores=resources.spill_stores,
        spill_loads=resources.spill_loads,
        threads=known.threads,
    )
