"""The section that a report has for each preset: its jobs, compared with the document that the preset repeats."""

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType

from warpfold.app.reports.finished import Finished
from warpfold.app.reports.kinds.registry import tables_of
from warpfold.app.reports.report import ChartView, Part, PartJob
from warpfold.app.reports.studies import associativity, correctness, future, puzzles, scaling, throughput
from warpfold.app.reports.studies.study import Compare, Study, machine
from warpfold.contract.kinds.preset import Absent, PresetSpec
from warpfold.contract.presets import catalogue
from warpfold.contract.presets.preset import Preset
from warpfold.contract.presets.published import p05, source_of

COMPARISONS: Mapping[str, Compare] = MappingProxyType(
    {
        "p34-coordination": puzzles.coordination,
        "p34-reduction": puzzles.reduction,
        "p34-advanced": puzzles.advanced,
        "p05-task1-correctness": correctness.correctness,
        "p05-task1-throughput": throughput.throughput,
        "p05-task2-scaling": scaling.scaling,
        "p05-task3-mixed": associativity.distribution("mixed"),
        "p05-task3-pathological": associativity.distribution("pathological"),
        "p05-task3-normal": associativity.distribution("normal"),
        "p05-task3-gpu-vs-cpu": associativity.gpu_vs_cpu,
        "p05-three-numbers": associativity.three_numbers,
        "p05-future": future.future,
    }
)
"""The function that compares a run of a preset with its document, by preset."""


def sections_of(spec: PresetSpec, children: Sequence[Finished]) -> tuple[Part, ...]:
    """A section for each preset that `spec` stands for."""
    presets = catalogue.members(spec.preset)
    absent = spec.expand().absent
    return tuple(
        _section(preset, children, absent, prefix=f"{preset.name}:" if len(presets) > 1 else "", changes=_changes(spec))
        for preset in presets
    )


def _changes(spec: PresetSpec) -> str | None:
    changes = [f"{name} = {value}" for name in ("backend", "max_n", "time_limit_s") if (value := getattr(spec, name))]
    if spec.children is not None:
        changes.append("other jobs than the preset's own")
    return ", ".join(changes) or None


def _section(
    preset: Preset, children: Sequence[Finished], absent: Sequence[Absent], *, prefix: str, changes: str | None
) -> Part:
    jobs = {
        (child.job.name or "").removeprefix(prefix): child
        for child in children
        if (child.job.name or "").startswith(prefix)
    }
    left_out = [job for job in absent if job.name.startswith(prefix)]
    study = Study(jobs, {job.name.removeprefix(prefix): job.why for job in left_out})
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
    for job in left_out:
        yield PartJob(
            job_id=None,
            name=job.name.removeprefix(prefix),
            kind="",
            status=None,
            why=f"left out: {job.why}",
            machine=None,
            total_ms=None,
            ended_at=None,
            device=None,
            provenance=None,
            tables=(),
        )
