"""The cluster puzzles: values to the bit."""

import numpy as np

from warpfold.app.reports.report import Compared, Finding, Verdict
from warpfold.app.reports.studies.study import Study, StudyOutcome, machine
from warpfold.contract.kinds.cluster import ClusterResult
from warpfold.contract.presets.published import p34

_WRONG_SEQUENCE = (
    "The text calls its input 0, 0.01, …, 10.23, whose sum is 5237.76. The sum that it expects, 523776, is that of "
    "0, 1, …, 1023, which is what the puzzle's program adds."
)


def coordination(study: Study) -> StudyOutcome:
    """Four sums that are positive and rise."""
    result, published = study.result("coordination", ClusterResult), p34().coordination
    measured = None if result is None else ", ".join(result.texts)
    row = Compared(
        case=f"{published.output}, {published.input}",
        quantity="block sums",
        unit="float32",
        published=published.check,
        measured=measured,
        machine=_where(result),
        verdict=_missing_or(result, passed=result is not None and all(check.passed for check in result.checks)),
        why=_how(result) if result else study.why_missing("coordination"),
    )
    return StudyOutcome((row,))


def reduction(study: Study) -> StudyOutcome:
    """One sum, which is a whole number and therefore exact."""
    result, published = study.result("reduction", ClusterResult), p34().reduction
    row = Compared(
        case="0 + 1 + … + 1023",
        quantity="sum",
        unit="float32",
        published=repr(published.expected),
        measured=None if result is None else result.texts[0],
        machine=_where(result),
        verdict=_missing_or(result, passed=result is not None and result.values[0] == published.expected),
        why=_how(result) if result else study.why_missing("reduction"),
    )
    return StudyOutcome((row,), (Finding(verdict=Verdict.CORRECTED, text=_WRONG_SEQUENCE),))


def advanced(study: Study) -> StudyOutcome:
    """Four float32 sums, each the very float32 that the published digits stand for."""
    result = study.result("advanced", ClusterResult)
    rows = []
    for block, published in enumerate(p34().advanced.published):
        value = None if result is None or block >= len(result.values) else float(result.values[block])
        same = value is not None and np.float32(value) == np.float32(published)
        rows.append(
            Compared(
                case=f"block {block}",
                quantity="sum",
                unit="float32",
                published=repr(published),
                measured=None if result is None or value is None else f"{result.texts[block]} = {result.hex[block]}",
                machine=_where(result),
                verdict=_missing_or(result, passed=same),
                why=_how(result) if result else study.why_missing("advanced"),
            )
        )
    return StudyOutcome(tuple(rows))


def _missing_or(result: ClusterResult | None, *, passed: bool) -> Verdict:
    if result is None:
        return Verdict.MISSING
    return Verdict.AGREES if passed else Verdict.DIFFERS


def _where(result: ClusterResult | None) -> str | None:
    return None if result is None else machine(result.device)


def _how(result: ClusterResult) -> str:
    if result.model:
        return f"by the model, which makes the same additions in the same order ({result.why_model})"
    return "by a cluster on the GPU" + (", the same bits as the model's" if result.same_bits_as_model else "")
