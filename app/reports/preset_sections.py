"""From the jobs of a preset to the part of a report that is about it."""

from collections.abc import Iterable, Sequence

from warpfold.app.reports.finished import Finished
from warpfold.app.reports.kinds.registry import tables_of
from warpfold.app.reports.parts import ChartView, Part, PartJob
from warpfold.app.reports.studies.by_preset import COMPARISONS
from warpfold.app.reports.studies.study import Study
from warpfold.app.reports.words import machine
from warpfold.contract.kinds.preset import Absent, PresetSpec
from warpfold.contract.presets import catalogue
from warpfold.contract.presets.preset import Preset
from warpfold.contract.presets.published import p05, source_of


def parts_of(spec: PresetSpec, children: Sequence[Finished]) -> tuple[Part, ...]:
    """A part for each preset that `spec` stands for."""
    presets = catalogue.members(spec.preset)
    absent = spec.expand().absent
    return tuple(
        _part(preset, children, absent, prefix=f"{preset.name}:" if len(presets) > 1 else "", changes=_changes(spec))
        for preset in presets
    )


def _changes(spec: PresetSpec) -> str | None:
    told = [f"{name} = {value}" for name in ("backend", "max_n", "time_limit_s") if (value := getattr(spec, name))]
    if spec.children is not None:
        told.append("other jobs than the preset's own")
    return ", ".join(told) or None


def _part(
    preset: Preset, children: Sequence[Finished], absent: Sequence[Absent], *, prefix: str, changes: str | None
) -> Part:
    jobs = {
        (child.job.name or "").removeprefix(prefix): child
        for child in children
        if (child.job.name or "").startswith(prefix)
    }
    left_out = [one for one in absent if one.name.startswith(prefix)]
    study = Study(jobs, {one.name.removeprefix(prefix): one.why for one in left_out})
    outcome = COMPARISONS[preset.name](study)
    return Part(
        preset=preset.name,
        title=preset.title,
        description=preset.description.strip(),
        source=source_of(preset.document),
        published_on=p05().machine if preset.document == "p05" else None,
        changes=changes,
        compared=outcome.compared,
        findings=outcome.findings,
        charts=tuple(ChartView.of(chart) for chart in outcome.charts),
        jobs=(*(_job(name, child) for name, child in jobs.items()), *_absent(left_out, prefix)),
    )


def _job(name: str, child: Finished) -> PartJob:
    job = child.job
    return PartJob(
        job_id=job.id,
        name=name,
        kind=job.kind,
        status=job.status,
        why=None if job.reason is None else f"{job.reason}: {job.error}",
        machine=machine(child.device),
        total_ms=child.total_ms,
        ended_at=job.finished_at,
        device=child.device,
        provenance=child.provenance,
        tables=() if child.result is None else tables_of(child.result, child.points),
    )


def _absent(left_out: Iterable[Absent], prefix: str) -> Iterable[PartJob]:
    for one in left_out:
        yield PartJob(
            job_id=None,
            name=one.name.removeprefix(prefix),
            kind="",
            status=None,
            why=f"left out: {one.why}",
            machine=None,
            total_ms=None,
            ended_at=None,
            device=None,
            provenance=None,
            tables=(),
        )
