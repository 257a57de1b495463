"""Charts of an accuracy study: error against size, a line a method, beside the published errors where there are any."""

from collections.abc import Mapping, Sequence

from warpfold.app.charts.chart import Chart
from warpfold.app.charts.vega_lite import Axis, Line, Point, Words, line_chart, significant
from warpfold.contract.kinds.accuracy import AccuracyPoint, AccuracyResult


def charts(result: AccuracyResult) -> list[Chart]:
    """One chart for each op, distribution and dtype that has at least two sizes."""
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
    """Absolute error against the exact value, on logarithmic axes, and dashed the `published` (n, error) of a method.
    What is exactly right has no place on such an axis: it is told in the subtitle."""
    methods = list(dict.fromkeys(point.method for point in points))
    lines = [
        Line(
            method,
            [
                Point(point.n, float(point.absolute_error))
                for point in sorted(points, key=lambda one: one.n)
                if point.method == method and point.absolute_error is not None
            ],
        )
        for method in methods
    ]
    right = [line.name for line in lines if all(point.y == 0 for point in line.points)]
    lines += [
        Line(method, [Point(n, error) for n, error in rows], published=True) for method, rows in published.items()
    ]
    subtitle = "absolute error of a float against the exact value"
    if published:
        subtitle += "; dashed: as published"
    if right:
        subtitle += f"; without error everywhere: {', '.join(right)}"
    worst = max(points, key=lambda one: float(one.absolute_error or 0.0))
    return line_chart(
        Words(
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
        lines,
    )
