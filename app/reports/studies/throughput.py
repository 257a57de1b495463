"""Task 1: throughput, the report's kernel beside Thrust and NumPy."""

from dataclasses import replace

from warpfold.app.charts.chart import Chart
from warpfold.app.charts.vega_lite import Axis, ChartText, Point, Series, line_chart
from warpfold.app.reports.kinds import benchmark as pictures
from warpfold.app.reports.report import Compared, Finding, Verdict
from warpfold.app.reports.studies.study import Published, Study, StudyOutcome, machine
from warpfold.contract.measurement import Measurement
from warpfold.contract.presets.published import ThroughputRow, p05
from warpfold.contract.wording import figure, milliseconds, percent, times

_CUSTOM, _THRUST, _SINGLE = "two_pass", "thrust", "single_pass"

Points = dict[tuple[str, int], Measurement]
"""Points that were measured, by strategy and size."""


def throughput(study: Study) -> StudyOutcome:
    """Each time of the report beside ours, in proportion; and each ratio, which should carry over better."""
    gpu, cpu = _points(study, "gpu"), _points(study, "cpu")
    where = machine(study.device("gpu"))
    rows = [row for published in p05().task1_throughput for row in _rows(study, published, gpu, where)]
    rows += _summary(study, gpu, cpu, where)
    charts = [*_beside_the_t4(gpu, where), *(chart for name in ("gpu", "cpu") for chart in _charts(study, name))]
    return StudyOutcome(tuple(rows), tuple(_findings(gpu, where)), tuple(charts))


def _beside_the_t4(gpu: Points, where: str | None) -> list[Chart]:
    """The report's two lines beside ours of the same kernels, and our single pass."""
    published = p05().task1_throughput
    thrust = [Point(row.n, 4 * row.n / row.thrust_ms / 1e6) for row in published]
    lines = [
        Series(_CUSTOM, [Point(row.n, row.custom_gbps) for row in published], published=True),
        Series(_THRUST, thrust, published=True),
    ]
    for strategy in (_CUSTOM, _THRUST, _SINGLE):
        speeds = sorted((n, point.gb_per_s or 0.0) for (name, n), point in gpu.items() if name == strategy)
        lines.append(Series(strategy, [Point(n, speed) for n, speed in speeds]))
    if where is None or not any(line.points for line in lines[2:]):
        return []
    text = ChartText(
        "beside-the-t4",
        "Throughput: this machine and the report's",
        f"{where}; dashed: {p05().machine.partition(' (')[0]}, as published",
        "GB/s against the number of elements, both logarithmic: the report's kernel and Thrust as published for a T4, "
        f"dashed, and both with our single pass as measured on {where}.",
    )
    return [line_chart(text, Axis("elements"), Axis("GB/s", format="~g"), lines)]


def _rows(study: Study, published: ThroughputRow, gpu: Points, where: str | None) -> list[Compared]:
    n = published.n
    case = f"n = {n:,}"
    custom, thrust = gpu.get((_CUSTOM, n)), gpu.get((_THRUST, n))
    missing = study.why_missing("gpu") if not gpu else f"not measured at {n:,} elements"

    def row(cell: Published, measured: str | None, why: str | None) -> Compared:
        return cell.missing(missing) if measured is None else cell.beside(measured, where, Verdict.OTHER_MACHINE, why)

    rows = []
    for what, t4_ms, point in (("custom", published.custom_ms, custom), ("Thrust", published.thrust_ms, thrust)):
        ms = None if point is None else point.kernel_ms
        why = None if not ms else f"{times(t4_ms / ms)} as fast as on the T4"
        rows.append(row(Published(case, f"{what} time", "ms", f"{t4_ms:.4f}"), milliseconds(ms) if ms else None, why))
    speed = None if custom is None else custom.gb_per_s
    of_peak = None if custom is None or custom.peak_gbps is None else f"{percent(custom.percent_of_peak)} of peak"
    cell = Published(case, "custom throughput", "GB/s", f"{published.custom_gbps:.2f}")
    rows.append(row(cell, None if speed is None else figure(speed), of_peak))
    ratio = _faster(thrust, custom)
    cell = Published(case, "custom against Thrust", "", f"{published.speedup_vs_thrust:.2f}×")
    rows.append(row(cell, None if ratio is None else times(ratio), _single(gpu, n)))
    return rows


def _single(gpu: Points, n: int) -> str | None:
    ratio = _faster(gpu.get((_THRUST, n)), gpu.get((_SINGLE, n)))
    return None if ratio is None else f"our single pass: {times(ratio)}"


def _summary(study: Study, gpu: Points, cpu: Points, where: str | None) -> list[Compared]:
    summary = p05().task1_summary
    low, high = summary.speedup_vs_numpy_range
    highest = Published(
        "summary", f"custom, highest throughput (at n = {summary.peak_n:,})", "GB/s", f"{summary.peak_gbps}"
    )
    of_peak = f"{summary.percent_of_theoretical} (of {summary.theoretical_gbps:g} GB/s)"
    peak = Published("summary", "share of the device's peak", "%", of_peak)
    host = Published(
        "summary", "NumPy, highest throughput, one thread", "GB/s", f"{summary.numpy_single_thread_peak_gbps}"
    )
    ratio = Published("summary", "custom against NumPy", "", f"{low:.2f}× to {high:.2f}×")
    rows = []
    best, numpy = _best(gpu, _CUSTOM), _best(cpu, "numpy")
    why = study.why_missing("gpu")
    if best is None:
        rows += [highest.missing(why), peak.missing(why)]
    else:
        rows.append(highest.beside(f"{figure(best.gb_per_s)} (at n = {best.n:,})", where, Verdict.OTHER_MACHINE))
        part = best.percent_of_peak
        if part is None:
            rows.append(peak.missing("the device does not tell its peak"))
        else:
            measured = f"{part:.1f} (of {figure(best.peak_gbps, 4)} GB/s)"
            rows.append(peak.beside(measured, where, Verdict.OTHER_MACHINE))
    if numpy is None:
        rows.append(host.missing(study.why_missing("cpu")))
    else:
        measured = f"{figure(numpy.gb_per_s)} (at n = {numpy.n:,})"
        rows.append(host.beside(measured, machine(study.device("cpu")), Verdict.OTHER_MACHINE))
    pairs = ((cpu.get(("numpy", n)), point) for (name, n), point in gpu.items() if name == _CUSTOM)
    ratios = [faster for cpu_point, point in pairs if (faster := _faster(cpu_point, point)) is not None]
    if ratios:
        rows.append(ratio.beside(f"{times(min(ratios))} to {times(max(ratios))}", where, Verdict.OTHER_MACHINE))
    else:
        rows.append(ratio.missing(why if best is None else study.why_missing("cpu")))
    return rows


def _best(points: Points, strategy: str) -> Measurement | None:
    """A strategy's point of the highest throughput."""
    points_of_strategy = (point for (name, _), point in points.items() if name == strategy)
    return max(points_of_strategy, key=lambda point: point.gb_per_s or 0.0, default=None)


def _findings(gpu: Points, where: str | None) -> list[Finding]:
    summary = p05().task1_summary
    findings = []
    custom, single = _best(gpu, _CUSTOM), _best(gpu, _SINGLE)
    if custom is not None and custom.peak_gbps:
        text = (
            f"The T4's {summary.peak_gbps} GB/s are {summary.percent_of_theoretical:g} % of its peak of "
            f"{summary.theoretical_gbps:g} GB/s. The same kernel reaches {figure(custom.gb_per_s)} GB/s on {where}, "
            f"{percent(custom.percent_of_peak)} of {figure(custom.peak_gbps, 4)} GB/s"
        )
        text += (
            ": with one element a read and at most 1024 blocks it asks for too little at a time to keep a faster "
            "memory busy."
            if custom.n >= summary.peak_n
            else f", at no more than {custom.n:,} elements."
        )
        findings.append(Finding(verdict=Verdict.OTHER_MACHINE, text=text))
    if single is not None and single.peak_gbps:
        text = (
            f"One pass with 16-byte reads reaches {figure(single.gb_per_s)} GB/s at n = {single.n:,}, "
            f"{percent(single.percent_of_peak)} of the peak and "
            f"{percent(single.percent_of_ceiling)} of the highest speed at which this device was seen to read."
        )
        findings.append(Finding(verdict=Verdict.OTHER_MACHINE, text=text))
    sizes = sorted({n for name, n in gpu if name == _SINGLE})
    ratios = {n: ratio for n in sizes if (ratio := _faster(gpu.get((_THRUST, n)), gpu[_SINGLE, n])) is not None}
    if ratios:
        slower = [f"{n:,}" for n, ratio in ratios.items() if ratio < 1]
        text = (
            f"single_pass against Thrust: {', '.join(f'{times(ratio)} at {n:,}' for n, ratio in ratios.items())}. "
            + (f"It is slower at {', '.join(slower)}." if slower else "It is faster at every row.")
        )
        findings.append(Finding(verdict=Verdict.DIFFERS if slower else Verdict.AGREES, text=text))
    return findings


def _faster(baseline: Measurement | None, candidate: Measurement | None) -> float | None:
    """How many times the candidate's time the baseline takes."""
    if baseline is None or candidate is None or not baseline.kernel_ms or not candidate.kernel_ms:
        return None
    return baseline.kernel_ms / candidate.kernel_ms


def _points(study: Study, name: str) -> Points:
    job = study.jobs.get(name)
    points = () if job is None else job.points
    return {(p.strategy, p.n): p for p in points if p.kernel_ms and p.cache == "cold" and "suspect" not in p.flags}


def _charts(study: Study, name: str) -> list[Chart]:
    job = study.jobs.get(name)
    charts = [] if job is None else pictures.charts(job.points)
    return [replace(chart, name=f"{name}-{chart.name}") for chart in charts]
