"""Task 3: the error of every order of additions, the report's beside ours, against what the report took for the truth
and against the truth."""

import math
from collections.abc import Iterator, Mapping, Sequence

from warpfold.app.reports.kinds import accuracy as pictures
from warpfold.app.reports.report import Compared, Finding, Verdict
from warpfold.app.reports.studies.study import Compare, Published, Study, StudyOutcome, machine
from warpfold.contract.kinds.accuracy import AccuracyPoint, AccuracyResult
from warpfold.contract.kinds.three_numbers import ThreeNumbersResult
from warpfold.contract.presets.published import p05
from warpfold.contract.wording import exactly, figure
from warpfold.kernels.accuracy.point import BoundVerdict

METHODS: Mapping[str, str] = {
    "sequential": "sequential",
    "reverse": "reverse",
    "tree": "tree",
    "sorted": "sorted_ascending",
    "numpy": "numpy",
    "gpu": "torch",
}
"""Our names of the report's methods. Its tree was a function of Python; its GPU sum was PyTorch's."""

_ROUNDED_REFERENCE = (
    "The report's tree sum shows errors of exactly 0 for whole columns. The true sum of such numbers is hardly ever a "
    "float32, so that no float32 can be without error. The report measured its own loops (but not NumPy and the GPU) "
    "against a reference that was itself rounded to float32: all their errors are multiples of the distance of float32 "
    "numbers there, such as 336 for 333 lost ones at 1e8, where they are 8 apart."
)
_SAME_SIZE = 10.0
"""Errors of other random numbers by the same method count as alike within this factor."""


def distribution(name: str) -> Compare:
    """The comparison of one of the report's three tables."""

    def compare(study: Study) -> StudyOutcome:
        return _outcome(study, "sizes", name, p05().task3_abs_error[name])

    return compare


def gpu_vs_cpu(study: Study) -> StudyOutcome:
    """NumPy's errors beside PyTorch's."""
    job = "cpu" if study.result("gpu", AccuracyResult) is None and study.result("cpu", AccuracyResult) else "gpu"
    outcome = _outcome(study, job, "normal", p05().task3_gpu_vs_cpu_normal)
    return StudyOutcome(outcome.compared, _who_is_closer(study), outcome.charts)


def _outcome(study: Study, job: str, name: str, published: Mapping[str, Sequence[float]]) -> StudyOutcome:
    result = study.result(job, AccuracyResult)
    points = {(p.method, p.n): p for p in result.points if p.distribution == name} if result else {}
    rows = []
    for method, errors in published.items():
        for n, error in zip(p05().task3_sizes, errors, strict=True):
            cell = Published(f"n = {n:,}", f"{method}, absolute error", "", figure(error))
            point = points.get((METHODS[method], n))
            if point is None:
                rows.append(cell.missing(study.why_missing(job if result is None or method != "gpu" else "gpu")))
            else:
                rows.append(_row(cell, error, point, machine(study.device(job))))
    charts = []
    if result is not None:
        with_error = [point for point in points.values() if point.absolute_error is not None]
        dashed = {
            METHODS[method]: [(n, error) for n, error in zip(p05().task3_sizes, errors, strict=True) if error > 0]
            for method, errors in published.items()
        }
        if with_error:
            title = f"Error of float32 sums, {name}: measured and published"
            charts.append(pictures.errors(f"error-{name}", title, with_error, dashed))
    return StudyOutcome(tuple(rows), tuple(_findings(name, list(points.values()))), tuple(charts))


def _row(cell: Published, error: float, point: AccuracyPoint, where: str | None) -> Compared:
    if point.absolute_error is None:
        return cell.missing(f"{point.method} {point.outcome}: {point.reason}")
    ours, theirs = float(point.absolute_error), _as_the_report_measures(point)
    measured = f"{figure(ours)} (as the report measures: {figure(theirs)})"
    why = f"value {point.value!r}, exact {point.exact!r}"
    if error == 0 and ours > 0:
        return cell.beside(measured, where, Verdict.CORRECTED, f"0 only against a rounded reference; {why}")
    if point.distribution == "pathological":  # the one array of the report that is known
        if not _alike(error, theirs, 1.005):
            if point.method in ("numpy", "torch"):
                why = f"the order of {point.method}'s additions depends on its version and on the machine; {why}"
            return cell.beside(measured, where, Verdict.DIFFERS, why)
        return cell.beside(measured, where, Verdict.AGREES, why)
    alike = "of the same size" if _alike(error, theirs, _SAME_SIZE) else f"{figure(_ratio(theirs, error))} times it"
    if theirs == 0 != error:
        alike = "none here, as the report measures"
    return cell.beside(measured, where, Verdict.OTHER_DATA, f"{alike}; {why}")


def _as_the_report_measures(point: AccuracyPoint) -> float:
    """The error against the report's reference, which for its own loops was rounded to float32."""
    library = point.method in ("numpy", "torch")
    return _number(point.reference_error if library else point.rounded_reference_error)


def _findings(name: str, points: Sequence[AccuracyPoint]) -> Iterator[Finding]:
    tree = [point for point in points if point.method == "tree" and point.absolute_error]
    if tree and name != "pathological":
        worst = max(tree, key=lambda point: float(point.absolute_error or 0.0))
        text = f"{_ROUNDED_REFERENCE} Here tree is off by {figure(float(worst.absolute_error or 0.0))} at {worst.n:,}."
        yield Finding(verdict=Verdict.CORRECTED, text=text)
    reference = [p for p in points if p.reference_own_error is not None and float(p.reference_own_error) > 0]
    if reference:
        worst = max(reference, key=lambda point: float(point.reference_own_error or 0.0))
        text = (
            f"The report's reference, NumPy's sum in float64, is itself off by "
            f"{figure(_number(worst.reference_own_error))} at {worst.n:,} elements."
        )
        yield Finding(verdict=Verdict.CORRECTED, text=text)
    wrong = {point.method for point in points if point.correctly_rounded is False}
    right = {point.method for point in points if point.correctly_rounded} - wrong
    if right:
        text = f"Correctly rounded at every size: {', '.join(sorted(right))}."
        yield Finding(verdict=Verdict.AGREES, text=text)
    judged = [point for point in points if point.bound_verdict in (BoundVerdict.HELD, BoundVerdict.EXCEEDED)]
    broken = [point for point in judged if point.bound_verdict is BoundVerdict.EXCEEDED]
    if judged:
        text = f"The a-priori bound of the method held at {len(judged) - len(broken)} of {len(judged)} points."
        if broken:
            text += f" It was exceeded by {', '.join(sorted({f'{p.method} at {p.n:,}' for p in broken}))}."
        yield Finding(verdict=Verdict.DIFFERS if broken else Verdict.AGREES, text=text)
    if name == "pathological":
        yield Finding(verdict=Verdict.AGREES, text=_PATHOLOGICAL)
    if name == "mixed":
        yield Finding(verdict=Verdict.AGREES, text=_MIXED)


_PATHOLOGICAL = (
    "Each 1 is lost as soon as it meets 1e8, whose neighbours in float32 are 8 away; sorted by magnitude, the ones are "
    "added among themselves first, and their sum survives as far as a multiple of 8 can hold it. That is why the "
    "report's sorted sum looks perfect: its remaining error is below what its rounded reference could show."
)
_MIXED = (
    "The data of this table are all positive: nothing cancels, though the report speaks of cancellation. What grows "
    "with n is the rounding of a running sum that is far larger than its next term; sorting does not help, because the "
    "large numbers dominate either way."
)


def _who_is_closer(study: Study) -> tuple[Finding, ...]:
    result = study.result("gpu", AccuracyResult)
    if result is None:
        return ()
    errors = {(p.method, p.n): float(p.absolute_error) for p in result.points if p.absolute_error is not None}
    sizes = [n for n in p05().task3_sizes if ("numpy", n) in errors and ("torch", n) in errors]
    if not sizes:
        return ()
    closer = [n for n in sizes if errors["torch", n] < errors["numpy", n]]
    published = p05().task3_gpu_vs_cpu_normal
    theirs = sum(gpu < cpu for gpu, cpu in zip(published["gpu"], published["numpy"], strict=True))
    text = (
        f"PyTorch on the GPU is closer to the truth than NumPy on the CPU at {len(closer)} of {len(sizes)} sizes; in "
        f"the report it was {theirs} of {len(published['gpu'])}. Both add float32 in a tree of their own, and with "
        "so few arrays luck has a part in which comes closer."
    )
    return (Finding(verdict=Verdict.OTHER_DATA, text=text),)


def _alike(a: float, b: float, factor: float) -> bool:
    if a == b:
        return True
    return a > 0 and b > 0 and max(a, b) <= factor * min(a, b)


def _ratio(a: float, b: float) -> float:
    return a / b if b else math.inf


def _number(value: float | int | bool | None) -> float:
    return math.nan if value is None else float(value)


def three_numbers(study: Study) -> StudyOutcome:
    """Both published sums, and the exact one."""
    published = p05().task3_three_numbers
    result = study.result("float32", ThreeNumbersResult)
    case = f"a = {published.a:g}, b = {published.b:g}, c = {published.c:g}"
    sums = {} if result is None else {order.expression: float(order.value) for order in result.orders}
    theirs = {
        "(a + b) + c": published.published_ab_c,
        "a + (b + c)": published.published_a_bc,
        "exact": published.exact,
    }
    rows = []
    for quantity, value in theirs.items():
        cell = Published(case, quantity, "", exactly(value))
        if result is None:
            rows.append(cell.missing(study.why_missing("float32")))
            continue
        measured = float(result.exact) if quantity == "exact" else sums[quantity]
        verdict = Verdict.AGREES if measured == value else Verdict.DIFFERS
        rows.append(cell.beside(exactly(measured), machine(result.device), verdict))
    findings = []
    if result is not None:
        right = [order.expression for order in result.orders if order.value == result.exact]
        text = (
            "Both published orders give 0, so the example does not show what the report says it shows, that "
            "(a + b) + c differs from a + (b + c): they are equal, and both wrong. Of the "
            f"{len(result.orders)} ways to add the three numbers, {len(right)} give {exactly(result.exact)}: "
            f"{', '.join(right)}. Those are the ones in which a and c meet first."
        )
        findings.append(Finding(verdict=Verdict.CORRECTED, text=text))
    return StudyOutcome(tuple(rows), tuple(findings))
