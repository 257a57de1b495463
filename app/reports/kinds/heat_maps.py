"""Benchmarks by shape as heat maps: which share of the device's read speed a strategy reaches at every shape, and how
many times as fast the exact strategy is as the best of its peers."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from warpfold.app.charts.chart import Chart
from warpfold.app.charts.vega_lite import Cell, ChartText, Plane, heat_map
from warpfold.contract.measurement import Measurement
from warpfold.contract.wording import significant
from warpfold.kernels.strategy import EXACT
from warpfold.kernels.studies.shapes import By, CaseShape

_CEILING = 90.0
"""Percent of the ceiling from which on cells are blue."""


@dataclass(frozen=True, slots=True)
class _MapKey:
    """The properties that all points of one heat map share, but for the strategy: the axes of the map, and its
    title."""

    x: str
    y: str
    name: str
    words: str

    @classmethod
    def of(cls, point: Measurement, shape: CaseShape) -> "_MapKey":
        where = f"{point.op}-{point.dtype}-{point.cache}"
        what = f"{point.op} of {point.dtype}, {point.cache} caches"
        match shape.by:
            case By.AXIS:
                return cls("columns", "rows", f"axis{shape.axis}-{where}", f"axis {shape.axis}, {what}")
            case By.SEGMENTS:
                return cls("mean length", "elements", f"segments-{where}", f"segments, {what}")
            case By.KEYS:
                return cls("groups", "rows", f"{shape.key_order}-keys-{where}", f"{shape.key_order} keys, {what}")


def heat_maps(points: Sequence[Measurement]) -> list[Chart]:
    """Two charts of each op, dtype, state of the caches and way to make values: `ratio`, where peers were measured, and
    `share`. `points` have a shape and a time, and are those of one device."""
    points_of: dict[_MapKey, dict[tuple[int, int], dict[str, Measurement]]] = {}
    for point in points:
        shape = point.shape
        assert shape is not None, "a point without a shape is no cell"
        points_of.setdefault(_MapKey.of(point, shape), {}).setdefault(_place(shape), {})[point.strategy] = point
    return [chart for key, cells in points_of.items() for chart in (*_ratio(key, cells), *_share(key, cells))]


def _place(shape: CaseShape) -> tuple[int, int]:
    match shape.by:
        case By.AXIS:
            return shape.columns or 0, shape.rows or 0
        case By.SEGMENTS:
            return shape.segments or 0, shape.n
        case By.KEYS:
            return shape.groups or 0, shape.rows or 0


Cells = Mapping[tuple[int, int], Mapping[str, Measurement]]


def _ratio(key: _MapKey, cells: Cells) -> list[Chart]:
    """The time of the best peer over that of the exact strategy."""

    def ratio(measured: Mapping[str, Measurement]) -> tuple[float, str] | None:
        own = measured.get(EXACT)
        peers = [point.kernel_ms for name, point in measured.items() if name != EXACT and point.kernel_ms]
        if own is None or not own.kernel_ms or not peers:
            return None
        value = min(peers) / own.kernel_ms
        return value, f"{significant(value)} ×"

    made = _cells(cells, ratio)
    if not made:
        return []
    device = next(iter(next(iter(cells.values())).values())).device
    names = sorted({name for measured in cells.values() for name in measured} - {EXACT})
    worst = min(made, key=lambda cell: cell.value)
    text = ChartText(
        f"ratio-{key.name}",
        f"Exact beside the best of {', '.join(names)}: {key.words}",
        f"{device}; time of the best peer ÷ time of the exact strategy: above 1 the exact strategy is faster",
        f"A cell for each number of {key.x} and {key.y}. The exact strategy is faster at "
        f"{sum(cell.value > 1 for cell in made)} of {len(made)} shapes; its lowest ratio is {worst.shown} at "
        f"{worst.x:,} {key.x} and {worst.y:,} {key.y}.",
    )
    return [heat_map(text, Plane(key.x, key.y, "best peer ÷ exact", 1.0), made)]


def _share(key: _MapKey, cells: Cells) -> list[Chart]:
    """The share of the measured read speed that the exact strategy reaches, or each strategy where it is not there."""
    strategies = list(dict.fromkeys(name for measured in cells.values() for name in measured))
    shown = [EXACT] if EXACT in strategies else strategies
    return [chart for strategy in shown for chart in _share_of(key, cells, strategy)]


def _share_of(key: _MapKey, cells: Cells, strategy: str) -> list[Chart]:
    def share(measured: Mapping[str, Measurement]) -> tuple[float, str] | None:
        point = measured.get(strategy)
        percent = None if point is None else point.percent_of_ceiling
        return None if percent is None else (percent, f"{percent:.0f} %")

    made = _cells(cells, share)
    if not made:
        return []
    ceiling = next(
        point.ceiling_gbps
        for measured in cells.values()
        for point in measured.values()
        if point.strategy == strategy and point.ceiling_gbps
    )
    lowest = min(made, key=lambda cell: cell.value)
    text = ChartText(
        f"share-{key.name}" if strategy == EXACT else f"share-{key.name}-{strategy}",
        f"{strategy} beside a loop that reads: {key.words}",
        f"percent of the measured read speed of {ceiling:,.0f} GB/s",
        f"A cell for each number of {key.x} and {key.y}. The lowest share of the read speed is {lowest.shown}, "
        f"at {lowest.x:,} {key.x} and {lowest.y:,} {key.y}.",
    )
    return [heat_map(text, Plane(key.x, key.y, "% of the read speed", _CEILING), made)]


def _cells(cells: Cells, figure: Callable[[Mapping[str, Measurement]], tuple[float, str] | None]) -> list[Cell]:
    made = []
    for (x, y), measured in cells.items():
        value = figure(measured)
        if value is not None:
            made.append(Cell(x, y, *value))
    return made
