"""What the report left for the future: it has no figures of these, so that each is a finding of its own."""

from collections.abc import Iterator

from warpfold.app.charts.chart import Chart
from warpfold.app.reports.kinds.registry import charts_of
from warpfold.app.reports.report import Compared, Finding, Verdict
from warpfold.app.reports.studies.study import Published, Study, StudyOutcome
from warpfold.contract.kinds.accuracy import AccuracyResult
from warpfold.contract.kinds.profile import ProfileResult
from warpfold.contract.kinds.scaling import ScalingResult
from warpfold.contract.measurement import Measurement
from warpfold.contract.presets.published import p05
from warpfold.contract.wording import figure, percent, times

_JOBS = {
    "occupancy and warp efficiency from Nsight Compute": ("occupancy",),
    "cooperative groups variant": ("cooperative-groups",),
    "other architectures (A100, H100)": (),
    "several elements per thread": ("elements-per-thread",),
    "CUDA events for multi-GPU timing": ("ring-versus-tree",),
    "NVLink systems": ("ring-versus-tree",),
    "4+ GPUs": ("ring-versus-tree",),
    "ring versus tree NCCL algorithms": ("ring-versus-tree",),
    "Kahan summation": ("kahan", "kahan-gpu"),
    "float16": ("half-precision",),
    "theoretical error bounds": ("kahan",),
    "product, max, min": ("products", "product-max-min", "product-max-min-cpu"),
}


def future(study: Study) -> StudyOutcome:
    """A row a wish, with the job that grants it, and what came out."""
    rows = tuple(_row(study, wish, _JOBS.get(wish, ())) for wish in p05().future_work)
    return StudyOutcome(rows, tuple(_findings(study)), tuple(_charts(study)))


def _row(study: Study, wish: str, jobs: tuple[str, ...]) -> Compared:
    cell = Published("future work", wish, "", "wished for")
    done = [name for name in jobs if (job := study.jobs.get(name)) is not None and job.result is not None]
    if not jobs:
        devices = sorted({device.name for name in study.jobs if (device := study.device(name)) is not None})
        return cell.beside(", ".join(devices) or None, None, Verdict.NEW, "where this report was made")
    if not done:
        return cell.missing("; ".join(study.why_missing(name) for name in jobs))
    gpus = _most_gpus(study)
    needed = {"ring-versus-tree": 4 if wish == "4+ GPUs" else 2}.get(jobs[0], 0)
    if gpus < needed:
        return cell.missing(f"{gpus or 'no'} GPUs took part")
    device = study.device(done[0])
    return cell.beside(f"done: {', '.join(done)}", device.name if device else None, Verdict.NEW)


def _most_gpus(study: Study) -> int:
    result = study.result("ring-versus-tree", ScalingResult)
    if result is None or result.note:
        return 0
    return max((message.ranks for message in result.messages if message.time_us is not None), default=0)


def _findings(study: Study) -> Iterator[Finding]:
    yield from _kahan(study, "kahan")
    yield from _kahan(study, "kahan-gpu")
    yield from _half(study)
    yield from _against(study, "cooperative-groups", "two_pass", ("cooperative", "cluster"))
    yield from _against(study, "elements-per-thread", "two_pass", ("single_pass",))
    yield from _occupancy(study)
    yield from _ring(study)


def _kahan(study: Study, name: str) -> Iterator[Finding]:
    result = study.result(name, AccuracyResult)
    if result is None:
        return
    largest = max(point.n for point in result.points)
    for distribution in dict.fromkeys(point.distribution for point in result.points):
        errors = {
            p.method: float(p.absolute_error)
            for p in result.points
            if (p.distribution, p.n) == (distribution, largest) and p.absolute_error is not None
        }
        listed = ", ".join(f"{method} {figure(error)}" for method, error in errors.items())
        text = f"Error at {largest:,} {distribution} elements on {result.device.name}: {listed}."
        yield Finding(verdict=Verdict.NEW, text=text)


def _half(study: Study) -> Iterator[Finding]:
    result = study.result("half-precision", AccuracyResult)
    points = [p for p in (result.points if result else ()) if p.method == "sequential" and p.relative_error is not None]
    for dtype in dict.fromkeys(point.dtype for point in points):
        worst = max((p for p in points if p.dtype == dtype), key=lambda p: float(p.relative_error or 0.0))
        text = (
            f"{dtype} added one by one is off by {percent(100 * float(worst.relative_error or 0.0))} at {worst.n:,} "
            f"{worst.distribution} elements; the exact sum, rounded once, costs as many reads."
        )
        yield Finding(verdict=Verdict.NEW, text=text)


def _against(study: Study, name: str, baseline: str, others: tuple[str, ...]) -> Iterator[Finding]:
    job = study.jobs.get(name)
    points = [p for p in (job.points if job else ()) if p.kernel_ms and "suspect" not in p.flags]
    for base in (point for point in points if point.strategy == baseline):
        pairs = [p for p in points if p.strategy in others and (p.op, p.dtype, p.n) == (base.op, base.dtype, base.n)]
        if pairs:
            yield Finding(verdict=Verdict.NEW, text=_ratios(base, pairs))


def _ratios(base: Measurement, others: list[Measurement]) -> str:
    assert base.kernel_ms, "only measured points come here"
    listed = ", ".join(
        f"{point.strategy} {figure(point.gb_per_s)} GB/s ({times(base.kernel_ms / point.kernel_ms)})"
        for point in others
        if point.kernel_ms
    )
    return f"{base.n:,} {base.dtype}: {base.strategy} {figure(base.gb_per_s)} GB/s, {listed}."


def _occupancy(study: Study) -> Iterator[Finding]:
    result = study.result("occupancy", ProfileResult)
    if result is None:
        return
    kernels = [(point, kernel) for point in result.points for kernel in point.kernels if kernel.occupancy_percent]
    if kernels:
        largest = max(point.n or 0 for point, _ in kernels)
        listed = {f"{p.strategy} {percent(k.occupancy_percent)}": None for p, k in kernels if p.n == largest}
        yield Finding(verdict=Verdict.NEW, text=f"Occupancy at {largest:,} elements: {', '.join(listed)}.")
    counted = [(p, k.counters) for p in result.points for k in p.kernels if k.counters is not None]
    if counted:
        listed = {f"{p.strategy} {percent(c.warp_efficiency_percent)}": None for p, c in counted}
        yield Finding(verdict=Verdict.NEW, text=f"Warp efficiency by Nsight Compute: {', '.join(listed)}.")


def _ring(study: Study) -> Iterator[Finding]:
    result = study.result("ring-versus-tree", ScalingResult)
    messages = [message for message in (result.messages if result else ()) if message.time_us is not None]
    for size in sorted({message.bytes for message in messages}):
        same = [message for message in messages if message.bytes == size]
        most = max(message.ranks for message in same)
        largest = [message for message in same if message.ranks == most]
        listed = ", ".join(f"{message.algorithm} {figure(message.time_us)} µs" for message in largest)
        text = f"All-reduce of {size:,} bytes on {most} ranks: {listed}."
        if result is not None and result.note:
            text += f" ({result.note})"
        yield Finding(verdict=Verdict.NEW, text=text)


def _charts(study: Study) -> Iterator[Chart]:
    for name, job in study.jobs.items():
        if job.result is not None:
            for chart in charts_of(job.result, job.points):
                yield Chart(f"{name}-{chart.name}", f"{chart.title} ({name})", chart.description, chart.spec)
