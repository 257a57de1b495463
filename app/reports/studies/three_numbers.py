"""Task 3: 1e8 + 1 − 1e8 in float32."""

from warpfold.app.reports.parts import Finding, Verdict
from warpfold.app.reports.studies.study import Outcome, Published, Study
from warpfold.app.reports.words import exactly, machine
from warpfold.contract.kinds.three_numbers import ThreeNumbersResult
from warpfold.contract.presets.published import p05


def three_numbers(study: Study) -> Outcome:
    """Both published sums, and the exact one."""
    published = p05().task3_three_numbers
    result = study.result("float32", ThreeNumbersResult)
    case = f"a = {published.a:g}, b = {published.b:g}, c = {published.c:g}"
    sums = {} if result is None else {order.expression: float(order.value) for order in result.orders}
    told = {"(a + b) + c": published.published_ab_c, "a + (b + c)": published.published_a_bc, "exact": published.exact}
    rows = []
    for quantity, value in told.items():
        said = Published(case, quantity, "", exactly(value))
        if result is None:
            rows.append(said.missing(study.why_missing("float32")))
            continue
        measured = float(result.exact) if quantity == "exact" else sums[quantity]
        verdict = Verdict.AGREES if measured == value else Verdict.DIFFERS
        rows.append(said.beside(exactly(measured), machine(result.device), verdict))
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
    return Outcome(tuple(rows), tuple(findings))
