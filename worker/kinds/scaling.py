"""Runs scaling studies: it reports progress after every point, and all points at the end."""

from dataclasses import asdict

from warpfold.app.jobs.attempt import Success
from warpfold.contract.kinds.scaling import MessagePoint, ScalingPoint, ScalingResult, ScalingSpec
from warpfold.contract.provenance import DeviceView
from warpfold.kernels.scaling.placement import placement_on
from warpfold.kernels.scaling.records import ArrayRecord, Libraries, MessageRecord
from warpfold.kernels.scaling.run import run as measured
from warpfold.kernels.studies.outcome import Outcome
from warpfold.worker.kinds.attempt import Attempt


def run(attempt: Attempt, spec: ScalingSpec) -> Success:
    """Measure all points of `spec`. Raises RankLost where a process of a group dies."""
    study, placement = spec.study(), placement_on(attempt.backend)
    arrays: list[ScalingPoint] = []
    messages: list[MessagePoint] = []
    provenance = attempt.provenance
    attempt.progress(0, len(study))
    for record in measured(placement, study):
        match record:
            case ArrayRecord():
                arrays.append(ScalingPoint.model_validate(asdict(record)))
            case MessageRecord():
                messages.append(MessagePoint.model_validate(asdict(record)))
            case Libraries(versions):
                libraries = {**provenance.libraries, **dict(versions)}
                provenance = provenance.model_copy(update={"libraries": libraries})
                continue
        attempt.progress(len(arrays) + len(messages), len(study))
    outcomes = [*(point.outcome for point in arrays), *(message.outcome for message in messages)]
    result = ScalingResult(
        dtype=study.dtype,
        distribution=spec.distribution,
        note=placement.note,
        devices=tuple(map(DeviceView.of, placement.devices)),
        available=placement.available,
        points=tuple(arrays),
        messages=tuple(messages),
        measured=outcomes.count(Outcome.MEASURED),
        skipped=outcomes.count(Outcome.SKIPPED),
        failed=outcomes.count(Outcome.FAILED),
        suspect=sum(point.suspect is not None for point in arrays),
        backend=attempt.device.backend,
        device=attempt.device,
        timings=attempt.timings(),
        provenance=provenance,
    )
    return Success(result.model_dump(mode="json"))
