"""Task 1: the six tests of the custom kernel."""

from warpfold.app.reports.report import Compared, Finding, Verdict
from warpfold.app.reports.studies.study import Published, Study, StudyOutcome, machine
from warpfold.contract.kinds.reduce import ReduceResult
from warpfold.contract.presets.published import CorrectnessCase, p05
from warpfold.contract.wording import exactly, figure

_JOBS = {
    "small known sum": "small-known-sum",
    "non-power-of-two": "non-power-of-two",
    "all zeros": "all-zeros",
    "negative numbers": "negative-numbers",
    "large random vs NumPy": "large-random",
    "custom vs Thrust": "custom-vs-thrust",
}
_CUSTOM = "the report's two-pass kernel"
_TWICE_ROUNDED = (
    "The report compares its kernel with NumPy and with Thrust: two rounded sums that may agree and both be wrong. "
    "Here each is held to the correctly rounded sum of the same array."
)


def correctness(study: Study) -> StudyOutcome:
    """Known sums must be equal; of random arrays, which the report does not name, the errors are compared."""
    cases = p05().task1_correctness
    rows = [row for case in cases for row in _rows(study, case, _JOBS[case.case])]
    return StudyOutcome(tuple(rows), (Finding(verdict=Verdict.CORRECTED, text=_TWICE_ROUNDED), *_thrust(study)))


def _rows(study: Study, case: CorrectnessCase, job: str) -> list[Compared]:
    if case.expected is not None:
        return [_known(study, case, _CUSTOM, f"{job}/custom"), _known(study, case, "exact sum", f"{job}/exact")]
    other = "numpy" if job == "large-random" else "thrust"
    return [_random(study, case, _CUSTOM, f"{job}/custom"), _random(study, case, other, f"{job}/{other}")]


def _known(study: Study, case: CorrectnessCase, what: str, job: str) -> Compared:
    published = Published(_case(case), what, "sum", exactly(case.published))
    result = study.result(job, ReduceResult)
    if result is None:
        return published.missing(study.why_missing(job))
    verdict = Verdict.AGREES if result.value == case.published else Verdict.DIFFERS
    return published.beside(exactly(result.number), machine(result.device), verdict)


def _random(study: Study, case: CorrectnessCase, what: str, job: str) -> Compared:
    error_text = f"{figure(case.published_relative_error)} (against NumPy or Thrust)"
    published = Published(_case(case), f"{what}, relative error", "", error_text)
    result = study.result(job, ReduceResult)
    exact = study.result(f"{job.partition('/')[0]}/exact", ReduceResult)
    if result is None or exact is None:
        return published.missing(study.why_missing(job))
    error = _relative(result, exact) if result.count == exact.count else None
    if error is None:
        return published.missing("the exact sum of the same array is not there, or is 0")
    why = (
        f"the report's array is not known; here the sum of {result.count:,} elements is {exactly(exact.number)}, "
        f"correctly rounded, and {what} gives {exactly(result.number)}"
    )
    return published.beside(f"{figure(error)} (against the exact sum)", machine(result.device), Verdict.OTHER_DATA, why)


def _case(case: CorrectnessCase) -> str:
    return f"{case.case}, n = {case.n:,}"


def _relative(result: ReduceResult, exact: ReduceResult) -> float | None:
    if not exact.number:
        return None
    return abs(float(result.number) - float(exact.number)) / abs(float(exact.number))


def _thrust(study: Study) -> tuple[Finding, ...]:
    ours = study.result("custom-vs-thrust/custom", ReduceResult)
    thrust = study.result("custom-vs-thrust/thrust", ReduceResult)
    if ours is None or thrust is None:
        return ()
    if ours.hex == thrust.hex:
        text = f"The report's kernel and Thrust give the same float32 here too, {exactly(ours.number)}."
        return (Finding(verdict=Verdict.AGREES, text=text),)
    text = (
        f"The report found its kernel and Thrust equal to the bit. On this machine, with other numbers, they are not: "
        f"{exactly(ours.number)} and {exactly(thrust.number)}. Both add in float32, in different orders; equality was "
        "chance."
    )
    return (Finding(verdict=Verdict.DIFFERS, text=text),)
