"""Shapes as the engine measures them on a CPU: the clock is a script, and every value is real."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.support.kernels.scripted import ScriptedTarget
from warpfold.kernels.bench.axes import Axes, Cache
from warpfold.kernels.bench.data import Data
from warpfold.kernels.bench.engine import Point, run
from warpfold.kernels.bench.host import shaped
from warpfold.kernels.bench.record import case_of, record_of
from warpfold.kernels.bench.stopping import Rule
from warpfold.kernels.errors import OutOfMemory
from warpfold.kernels.source import Source
from warpfold.kernels.studies.outcome import Outcome
from warpfold.kernels.studies.shapes import By, CaseShape

RULE = Rule(target_rse=0.5, min_samples=2, max_samples=5, time_limit_s=0.5)
MATRICES = (CaseShape.matrix(40, 7, 0), CaseShape.matrix(40, 7, 1), CaseShape.matrix(1, 300, 1))
CUTS = (CaseShape.cut(3000, 7), CaseShape.cut(5, 100))
TABLES = (CaseShape.table(3000, 70, "random"), CaseShape.table(10, 70, "sorted"))
OPS = ("sum", "mean", "min", "max")


def points(shapes: tuple[CaseShape, ...], strategies: tuple[str, ...], *ops: str, **data: Any) -> list[Point]:
    axes = Axes(strategies, ops, ("float32", "float64"), shapes, (Cache.HOT,))
    return list(run(ScriptedTarget({}), axes, RULE, Data(**data).source, seed=3))


@pytest.mark.parametrize(
    ("shapes", "peers"), [(MATRICES, ("numpy",)), (CUTS, ("numpy",)), (TABLES, ("numpy", "polars", "pyarrow"))]
)
def test_the_exact_strategy_and_its_peers_are_measured_with_right_values(
    shapes: tuple[CaseShape, ...], peers: tuple[str, ...]
) -> None:
    made = points(shapes, ("exact", *peers), *OPS)
    for point in made:
        row = record_of(point)
        if point.outcome is Outcome.SKIPPED:  # the row of the strategy says which ops it computes
            assert "is measured for" in (point.reason or "")
            continue
        assert point.outcome is Outcome.MEASURED, (row, point.reason)
        assert row.distinct_values is not None
        assert row.value is None
        if row.strategy == "exact" or row.op in ("min", "max"):
            assert (row.relative_error, row.distinct_values) == (0.0, 1)
        assert case_of(row) == point.case
    computed = {(point.case.strategy, point.case.op) for point in made if point.outcome is Outcome.MEASURED}
    assert {("exact", op) for op in OPS} <= computed
    assert {(peer, "sum") for peer in peers} <= computed


def test_bytes_count_offsets_keys_and_values_too() -> None:
    matrix, *_ = points(MATRICES[:1], ("exact",), "sum")
    assert record_of(matrix).bytes == (40 * 7 + 7) * 4
    cut, *_ = points((CaseShape.cut(5, 1000),), ("exact",), "sum")
    assert record_of(cut).bytes == 5 * 4 + 2 * 8 + 4
    table, *_ = points(TABLES[:1], ("exact",), "sum")
    assert record_of(table).bytes == 3000 * (4 + 4) + 70 * 4


Spoil = Callable[[NDArray[Any]], NDArray[Any]]


@pytest.fixture
def spoil(monkeypatch: pytest.MonkeyPatch) -> Callable[[str, Spoil], None]:
    """Change what a strategy gives of matrices."""

    def change(strategy: str, wrong: Spoil) -> None:
        right = shaped.BOUND[strategy, By.AXIS]

        def bound(data: shaped.HostShape, op: str) -> shaped.Bound:
            call, values = right(data, op)
            return call, lambda made: wrong(values(made))

        monkeypatch.setattr(shaped, "BOUND", {**shaped.BOUND, (strategy, By.AXIS): bound})

    return change


def test_a_peer_that_loses_an_element_fails_and_has_no_speed(spoil: Callable[[str, Spoil], None]) -> None:
    spoil("numpy", lambda values: values * (1 + 1e-3))
    exact, numpy, *_ = points(MATRICES[1:2], ("exact", "numpy"), "sum")
    assert exact.outcome is Outcome.MEASURED
    assert numpy.outcome is Outcome.FAILED
    assert numpy.measured is None
    assert "wrong value: sum gave" in (numpy.reason or "")
    assert "of value 0, and" in (numpy.reason or "")


def test_an_exact_strategy_that_is_wrong_by_one_bit_is_found_out(spoil: Callable[[str, Spoil], None]) -> None:
    spoil("exact", lambda values: np.nextafter(values, np.inf))
    for point in points(MATRICES[1:2], ("exact", "numpy"), "sum"):
        assert point.outcome is Outcome.FAILED
        assert "wrong value: exact sum gave" in (point.reason or "")


def test_values_that_change_from_run_to_run_are_counted(spoil: Callable[[str, Spoil], None]) -> None:
    runs = iter(range(1000))

    def waver(values: NDArray[Any]) -> NDArray[Any]:
        return np.asarray(values + (next(runs) % 2) * np.spacing(values))

    spoil("numpy", waver)
    point, *_ = points(MATRICES[1:2], ("numpy",), "sum")
    assert point.outcome is Outcome.MEASURED, point.reason
    assert point.distinct_values == 2


def test_data_of_a_shape_are_loaded_once_and_what_does_not_fit_is_skipped() -> None:
    loads: list[CaseShape] = []

    class Counting(ScriptedTarget):
        def load_shape(self, source: Source, shape: CaseShape, seed: int) -> shaped.HostShape:
            loads.append(shape)
            if shape == MATRICES[0]:
                raise OutOfMemory("it has 1.0 GB")
            return super().load_shape(source, shape, seed)

    axes = Axes(("exact", "numpy"), ("sum", "max"), ("float32",), MATRICES[:2], (Cache.HOT,))
    made = list(run(Counting({}), axes, RULE, Data().source))
    assert loads == list(MATRICES[:2])
    assert [point.outcome for point in made] == [Outcome.SKIPPED] * 4 + [Outcome.MEASURED] * 4
    assert made[0].reason == "it has 1.0 GB"
