"""Reductions of one array, or of two, to one value."""

import base64

from warpfold.contract.json_value import check_length, hex_of
from warpfold.contract.kinds.reduce import InputView, ReduceResult, ReduceSpec
from warpfold.contract.timings import StageName, StageTime, Timings
from warpfold.kernels.backend import Reduction, Stages
from warpfold.kernels.bench import Flag
from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.mapped import survive_cuts
from warpfold.kernels.ops import op_named
from warpfold.kernels.sequential import SequentialSource, counted
from warpfold.kernels.source import ArraySource, unchanged
from warpfold.worker.kinds.attempt import Attempt
from warpfold.worker.messages import Success


def run(attempt: Attempt, spec: ReduceSpec) -> Success:
    """Reduce the elements of `spec`, which are opened here. Raises a KernelError."""
    op = op_named(spec.op)
    sources = [
        (named.refusing_nulls() if op.places or op.sources > 1 else named).open(attempt.folders)
        for _, named in spec.sources()
    ]
    source, other = sources[0], sources[1] if len(sources) > 1 else None
    width = sum(part.dtype.itemsize for part in sources)
    if any(isinstance(part, ArraySource) and part.file is not None for part in sources):
        survive_cuts()
    reduction = attempt.backend.reduce(
        source,
        spec.op,
        strategy=spec.strategy,
        nan_policy=spec.nan_policy,
        ddof=spec.ddof,
        other=other,
        progress=lambda done, total: attempt.progress(done * width, total * width, "bytes"),
    )
    for named, part in zip((named for _, named in spec.sources()), sources, strict=True):
        if not unchanged(part):
            raise InvalidInput(f"{named.identity()} changed while it was read", "source")
    nbytes = sum(counted(part) * part.dtype.itemsize for part in sources)
    check_length(reduction.value)
    decoded = [part for part in sources if isinstance(part, SequentialSource)]
    result = ReduceResult(
        value=reduction.value,
        hex=hex_of(reduction.value),
        dtype=reduction.dtype,
        count=reduction.count,
        op=reduction.op,
        strategy=reduction.strategy,
        correctly_rounded=reduction.correctly_rounded,
        backend=attempt.device.backend,
        device=attempt.device,
        timings=_timings(attempt, reduction, nbytes),
        provenance=attempt.provenance,
        nulls=sum(part.tally.nulls for part in decoded),
        input=InputView.of([remote.facts() for part in decoded for remote in part.tally.objects]),
        state=None if reduction.state is None else base64.b64encode(reduction.state).decode(),
    )
    point = attempt.point(
        op=reduction.op,
        dtype=source.dtype.name,
        strategy=reduction.strategy,
        n=counted(source),
        bytes=nbytes,
        samples=1,
        load_ms=reduction.load_ms,
        kernel_ms=reduction.kernel_ms,
        correctly_rounded=reduction.correctly_rounded,
        value=repr(reduction.value),
        prepare_ms=reduction.prepare_ms,
        flags=[Flag.FIRST_RUN.value] if reduction.prepare_ms else [],
    )
    return Success(result.model_dump(mode="json"), (point,))


def _timings(attempt: Attempt, reduction: Reduction, nbytes: int) -> Timings:
    """Where the time went. A backend that tells no stages apart has told the time of the reduction, which is the bound
    only where it took longer than all else."""
    stages = reduction.stages or Stages(reduce_s=reduction.kernel_ms / 1e3)
    by_name: dict[StageName, float | None] = {
        "read": stages.read_s,
        "decode": stages.decode_s,
        "copy": stages.copy_s,
        "reduce": stages.reduce_s,
    }
    taken = {name: seconds for name, seconds in by_name.items() if seconds is not None}
    bound = max(taken, key=lambda name: taken[name], default=None)
    if reduction.stages is None and reduction.kernel_ms <= reduction.load_ms:
        bound = None
    return Timings(
        queued_ms=attempt.queued_ms,
        prepare_ms=reduction.prepare_ms,
        load_ms=reduction.load_ms,
        kernel_ms=reduction.kernel_ms,
        total_ms=attempt.elapsed_ms(),
        stages={name: StageTime.of(seconds, nbytes) for name, seconds in taken.items()},
        bound=bound,
    )
