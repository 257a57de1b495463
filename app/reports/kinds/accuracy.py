"""An accuracy study as tables and as charts: the error of each method against the size."""

from collections.abc import Mapping, Sequence

from warpfold.app.charts.chart import Chart
from warpfold.app.charts.vega_lite import Axis, ChartText, Point, Series, line_chart
from warpfold.app.reports.report import Table
from warpfold.contract.kinds.accuracy import AccuracyPoint, AccuracyResult
from warpfold.contract.wording import ABSENT, exactly, figure, significant, yes_or_no

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


def tables(result: AccuracyResult) -> tuple[Table, ...]:
    """A table for each op, distribution and dtype."""
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
        yes_or_no(point.repeatable),
    )


def _note(points: list[AccuracyPoint]) -> str:
    formulas = {point.method: point.bound_formula for point in points if point.bound_formula}
    bounds = "; ".join(f"{method}: {formula}" for method, formula in formulas.items())
    return f"Errors are against the exact value. Bounds: {bounds}." if bounds else "Errors are against the exact value."


def charts(result: AccuracyResult) -> list[Chart]:
    """A chart for each op, distribution and dtype that has at least two sizes."""
    groups: dict[tuple[str, str, str], list[AccuracyPoint]] = {}
    for point in result.points:
        if point.absolute_error is not None:
            groups.setdefault((point.op, point.distribution, point.dtype), []).append(point)
    return [
        errors(f"error-{op}-{distribution}-{dtype}", f"Error: {op} of {distribution} {dtype}", points)
        for (op, distribution, dtype), points in groups.items()
        if len({point.n for point in points}) > 1
    ]


def errors(
    name: str, title: str, points: Sequence[AccuracyPoint], published: Mapping[str, Sequence[tuple[int, float]]] = {}
) -> Chart:
    """The absolute error of each method against the size, on logarithmic axes. The `published` (n, error) of a method
    are dashed. An error of zero has no place on such an axis: the subtitle names the methods that have no other."""
    methods = list(dict.fromkeys(point.method for point in points))
    series = [
        Series(
            method,
            [
                Point(point.n, float(point.absolute_error))
                for point in sorted(points, key=lambda point: point.n)
                if point.method == method and point.absolute_error is not None
            ],
        )
        for method in methods
    ]
    faultless = [line.name for line in series if all(point.y == 0 for point in line.points)]
    series += [
        Series(method, [Point(n, error) for n, error in rows], published=True) for method, rows in published.items()
    ]
    subtitle = "absolute error of a float against the exact value"
    if published:
        subtitle += "; dashed: as published"
    if faultless:
        subtitle += f"; without error everywhere: {', '.join(faultless)}"
    worst = max(points, key=lambda point: float(point.absolute_error or 0.0))
    return line_chart(
        ChartText(
            name,
            title,
            subtitle,
            f"Absolute error against the number of elements, both logarithmic, one line each for "
            f"{', '.join(methods)}{'; dashed, the published ones' if published else ''}. "
            f"The largest measured error is that of {worst.method} with "
            f"{significant(float(worst.absolute_error or 0.0))} at {worst.n:,} elements.",
        ),
        Axis("elements"),
        Axis("absolute error", format=",~g"),
        series,
    )
