"""The times of the stages of a reduction, to one value or to many, for its result and for its measurement."""

from typing import Any

from warpfold.contract.measurement import Measurement
from warpfold.contract.timings import StageName, StageTime, Timings
from warpfold.kernels.backend import GroupedReduction, Reduction, Stages
from warpfold.kernels.bench.flags import Flag
from warpfold.kernels.parts.keyed import GroupTable
from warpfold.worker.kinds.attempt import Attempt


def timings_of(attempt: Attempt, reduction: Reduction | GroupedReduction | GroupTable, nbytes: int) -> Timings:
    """The times of the stages. A backend that tells no stages apart reports the time of the whole reduction. That is
    the bound only if it is longer than all the other times."""
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
        queued_ms=attempt.lease.queued_ms,
        prepare_ms=attempt.prepare_ms(reduction.prepare_ms),
        load_ms=reduction.load_ms,
        kernel_ms=reduction.kernel_ms,
        total_ms=attempt.elapsed_ms(),
        stages={name: StageTime.of(seconds, nbytes) for name, seconds in taken.items()},
        bound=bound,
    )


def point_of(attempt: Attempt, reduction: Reduction | GroupedReduction, nbytes: int, **figures: Any) -> Measurement:
    """The measurement of a reduction that read `nbytes`. `figures` are the fields that its backend does not tell."""
    prepare_ms = attempt.prepare_ms(reduction.prepare_ms)
    return attempt.point(
        op=reduction.op,
        strategy=reduction.strategy,
        bytes=nbytes,
        samples=1,
        load_ms=reduction.load_ms,
        kernel_ms=reduction.kernel_ms,
        correctly_rounded=reduction.correctly_rounded,
        prepare_ms=prepare_ms,
        flags=[Flag.FIRST_RUN.value] if prepare_ms else [],
        **figures,
    )
