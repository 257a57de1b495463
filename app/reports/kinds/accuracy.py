"""Accuracy studies and three numbers as tables."""

from warpfold.app.reports.parts import Table
from warpfold.app.reports.words import ABSENT, exactly, figure, yes
from warpfold.contract.kinds.accuracy import AccuracyPoint, AccuracyResult
from warpfold.contract.kinds.three_numbers import ThreeNumbersResult

_COLUMNS = (
    "method",
    "n",
    "value",
    "|error|",
    "relative",
    "ulps",
    "bound",
    "held",
    "against float64 NumPy",
    "distinct in random orders",
    "repeatable",
)


def tables(result: AccuracyResult | ThreeNumbersResult) -> tuple[Table, ...]:
    """A table for each op, distribution and dtype, or one of the ways to add three numbers."""
    return _three_numbers(result) if isinstance(result, ThreeNumbersResult) else _study(result)


def _study(result: AccuracyResult) -> tuple[Table, ...]:
    groups: dict[tuple[str, str, str], list[AccuracyPoint]] = {}
    for point in result.points:
        groups.setdefault((point.op, point.distribution, point.dtype), []).append(point)
    return tuple(
        Table(
            title=f"{op} of {distribution} {dtype}",
            columns=_COLUMNS,
            rows=tuple(map(_row, points)),
            note=_note(points),
        )
        for (op, distribution, dtype), points in groups.items()
    )


def _three_numbers(result: ThreeNumbersResult) -> tuple[Table, ...]:
    rows = tuple(
        (order.expression, exactly(order.inner), exactly(order.value), figure(order.absolute_error))
        for order in result.orders
    )
    title = f"a = {result.a!r}, b = {result.b!r}, c = {result.c!r} in {result.dtype}; exact: {result.exact!r}"
    return (Table(title=title, columns=("sum", "in the brackets", "value", "|error|"), rows=rows),)


def _row(point: AccuracyPoint) -> tuple[str, ...]:
    if point.value is None:
        return (point.method, f"{point.n:,}", f"{point.outcome}: {point.reason}", *[ABSENT] * 8)
    held = ABSENT if point.bound_verdict is None else point.bound_verdict.value.replace("_", " ")
    distinct = f"{point.distinct_results} of {point.permutations}" if point.distinct_results is not None else ABSENT
    return (
        point.method,
        f"{point.n:,}",
        exactly(point.value),
        figure(point.absolute_error),
        figure(point.relative_error),
        figure(point.ulps),
        figure(point.bound),
        held,
        figure(point.reference_error),
        distinct,
        yes(point.repeatable),
    )


def _note(points: list[AccuracyPoint]) -> str:
    formulas = {point.method: point.bound_formula for point in points if point.bound_formula}
    told = "; ".join(f"{method}: {formula}" for method, formula in formulas.items())
    return f"Errors are against the exact value. Bounds: {told}." if told else "Errors are against the exact value."
