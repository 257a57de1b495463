"""Task 2: several GPUs. The report's times of two GPUs are not physical; each is put beside one that is."""

from warpfold.app.reports.kinds import scaling as pictures
from warpfold.app.reports.report import Compared, Finding, Verdict
from warpfold.app.reports.studies.study import Published, Study, StudyOutcome
from warpfold.contract.kinds.scaling import ScalingPoint, ScalingResult
from warpfold.contract.presets.published import ScalingRow, p05
from warpfold.contract.wording import exactly, figure, milliseconds, times, yes_or_no

_GPUS = 2

_FAULT = (
    "The report's 47.52× on two GPUs is a fault of timing. Its clock was the host's, and it did not wait for the GPUs: "
    "what it measured is how long it takes to hand work over, which is why its times hardly grow from 50 million to "
    "1 billion elements, why two GPUs seem 47 times as fast as one, and why communication comes to −0.4336 ms. A "
    "speed-up above the number of GPUs, or a negative time, is flagged here as suspect and left out of every summary."
)


def scaling(study: Study) -> StudyOutcome:
    """Times, speed-up and efficiency of the report's sizes on two ranks, then what the report wished for."""
    result = study.result("strong", ScalingResult)
    rows = [row for published in p05().task2_scaling for row in _rows(study, published, result)]
    rows += [_overhead(study, result), _check(study, result)]
    charts = [
        chart
        for name in ("strong", "weak", "messages")
        if (result := study.result(name, ScalingResult)) is not None
        for chart in pictures.charts(result)
    ]
    return StudyOutcome(tuple(rows), tuple(_findings(study)), tuple(charts))


def _rows(study: Study, published: ScalingRow, result: ScalingResult | None) -> list[Compared]:
    n = published.n
    case = f"n = {n:,}"
    single, two = _point(result, n, 1), _point(result, n, _GPUS)
    physical = published.speedup <= _GPUS
    cells = {
        "one GPU": (Published(case, "one GPU", "ms", f"{published.single_ms:.4f}"), single, True),
        "two GPUs": (Published(case, "two GPUs", "ms", f"{published.multi_ms:.4f}"), two, physical),
        "speed-up": (Published(case, "speed-up", "", f"{published.speedup:.2f}×"), two, physical),
        "efficiency": (Published(case, "efficiency", "%", f"{published.efficiency_percent}"), two, physical),
    }
    rows = []
    for quantity, (cell, point, believable) in cells.items():
        measured = None if point is None else _shown(quantity, point)
        if measured is None:
            rows.append(cell.missing(_why_missing(study, result, n)))
        elif point is not None and point.suspect:
            rows.append(cell.beside(measured, _where(result), Verdict.DIFFERS, f"suspect: {point.suspect}"))
        else:
            verdict = Verdict.OTHER_MACHINE if believable else Verdict.CORRECTED
            rows.append(
                cell.beside(measured, _where(result), verdict, None if believable else "the report's is not physical")
            )
    return rows


def _shown(quantity: str, point: ScalingPoint) -> str | None:
    if quantity == "speed-up":
        return None if point.speedup is None else times(point.speedup)
    if quantity == "efficiency":
        return None if point.efficiency is None else f"{100 * point.efficiency:.1f}"
    return None if point.total_ms is None else milliseconds(point.total_ms)


def _overhead(study: Study, result: ScalingResult | None) -> Compared:
    overhead = p05().task2_overhead_100M
    cell = Published("n = 100,000,000", "communication", "ms", f"{overhead.communication_ms}")
    point = _point(result, 100_000_000, _GPUS)
    if point is None or point.communication_ms is None:
        return cell.missing(_why_missing(study, result, 100_000_000))
    why = "the report subtracts an estimate from a faulty time; here each GPU's events tell it"
    return cell.beside(milliseconds(point.communication_ms), _where(result), Verdict.CORRECTED, why)


def _check(study: Study, result: ScalingResult | None) -> Compared:
    check = p05().task2_correctness
    cell = Published(
        f"n = {check.n:,}", "two GPUs give the sum of one", "", f"yes ({exactly(check.single_gpu)}, float32)"
    )
    points = [p for p in result.points if p.ranks > 1 and p.same_bits is not None] if result else []
    if not points:
        return cell.missing(_why_missing(study, result, check.n))
    exact = [point for point in points if point.method == "exact"]
    floats = [point for point in points if point.method == "float"]
    measured = f"exact sums: {_all(exact)}; float sums: {_all(floats)}"
    verdict = Verdict.AGREES if all(point.same_bits for point in exact) else Verdict.DIFFERS
    return cell.beside(measured, _where(result), verdict, "the report's numbers are not known; one seed names these")


def _all(points: list[ScalingPoint]) -> str:
    same = sum(bool(point.same_bits) for point in points)
    return f"{yes_or_no(same == len(points))}, {same} of {len(points)}" if points else "none"


def _findings(study: Study) -> list[Finding]:
    findings = [Finding(verdict=Verdict.CORRECTED, text=_FAULT)]
    strong = study.result("strong", ScalingResult)
    if strong is not None and strong.note:
        findings.append(Finding(verdict=Verdict.MISSING, text=f"{strong.note[0].upper()}{strong.note[1:]}."))
    weak = study.result("weak", ScalingResult)
    points = [p for p in (weak.points if weak else ()) if p.ranks > 1 and p.efficiency is not None and not p.suspect]
    if points:
        best = max(points, key=lambda point: (point.n, point.efficiency or 0.0))
        text = (
            f"Weak scaling of the exact sum: efficiency {figure(best.efficiency)} on {best.ranks} ranks at "
            f"{best.n // best.ranks:,} elements a rank ({figure(best.gb_per_s)} GB/s in all)."
        )
        findings.append(Finding(verdict=Verdict.OTHER_MACHINE, text=text))
    messages = study.result("messages", ScalingResult)
    timed = [message for message in (messages.messages if messages else ()) if message.time_us is not None]
    if timed:
        least = min(timed, key=lambda message: (message.bytes, message.time_us or 0.0))
        most = max(timed, key=lambda message: message.busbw_gbps or 0.0)
        text = (
            f"An all-reduce of {least.bytes:,} bytes on {least.ranks} ranks takes {figure(least.time_us)} µs; the "
            f"highest bus bandwidth is {figure(most.busbw_gbps)} GB/s, for {most.bytes:,} bytes."
        )
        findings.append(Finding(verdict=Verdict.OTHER_MACHINE, text=text))
    suspects = [p for name in ("strong", "weak") for p in _points(study, name) if p.suspect]
    if suspects:
        text = f"{len(suspects)} of our own points are suspect: {suspects[0].suspect}"
        findings.append(Finding(verdict=Verdict.DIFFERS, text=text))
    return findings


def _points(study: Study, name: str) -> tuple[ScalingPoint, ...]:
    result = study.result(name, ScalingResult)
    return () if result is None else result.points


def _point(result: ScalingResult | None, n: int, ranks: int) -> ScalingPoint | None:
    """The point of a float sum under strong scaling, which the report measured."""
    points = () if result is None else result.points
    matching = (p for p in points if (p.n, p.ranks, p.scaling, p.method) == (n, ranks, "strong", "float"))
    return next((point for point in matching if point.total_ms is not None), None)


def _where(result: ScalingResult | None) -> str | None:
    if result is None:
        return None
    return f"{result.device.name}, without GPUs" if result.note else f"{len(result.devices)} × {result.devices[0].name}"


def _why_missing(study: Study, result: ScalingResult | None, n: int) -> str:
    if result is None:
        return study.why_missing("strong")
    reasons = {p.reason for p in result.points if p.n == n and p.reason}
    return "; ".join(sorted(reasons)) or f"not measured at {n:,} elements"
