"""The axes of a study and the methods on the first of them."""

from typing import Any

import pytest

from warpfold.kernels.accuracy import MAX_POINTS, AccuracyAxes, method_named, methods, methods_on
from warpfold.kernels.catalog import strategies
from warpfold.kernels.errors import InvalidInput

GOOD: dict[str, Any] = {
    "methods": ("tree", "exact"),
    "ops": ("sum", "dot"),
    "distributions": ("normal",),
    "dtypes": ("float32", "float64"),
    "sizes": (10, 100, 1000),
}


def test_there_is_a_case_for_every_combination_and_those_on_one_array_follow_each_other() -> None:
    axes = AccuracyAxes(**GOOD)
    cases = list(axes.cases())
    assert len(cases) == len(axes) == len(set(cases)) == 24
    arrays = [(case.distribution, case.dtype, case.n) for case in cases]
    assert arrays == [array for array in dict.fromkeys(arrays) for _ in range(4)]


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"methods": ()}, "methods"),
        ({"methods": ("tree", "tree")}, "methods"),
        ({"methods": ("bush",)}, "methods"),
        ({"ops": ("max",)}, "ops"),
        ({"dtypes": ("int8",)}, "dtypes"),
        ({"sizes": (0,)}, "sizes"),
        ({"sizes": tuple(range(1, MAX_POINTS))}, "sizes"),
    ],
)
def test_axes_that_make_no_sense_are_refused_by_name(change: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        AccuracyAxes(**{**GOOD, **change})
    assert refused.value.field == field


def test_every_strategy_of_the_catalogue_is_a_method() -> None:
    named = {(method.strategy, backend) for method in methods().values() for backend in method.backends}
    assert {(row.name, row.backend) for row in strategies()} <= named


def test_a_strategy_whose_name_a_loop_has_goes_by_the_prefix() -> None:
    assert (method_named("tree").strategy, method_named("cuda_tree").strategy) == (None, "tree")
    assert method_named("exact").backends == ("cpu", "cuda")
    assert all(method.summary for method in methods().values())


def test_a_gpu_slot_runs_what_its_host_can_and_more() -> None:
    host, gpu = set(methods_on("cpu")), set(methods_on("cuda"))
    assert host < gpu == set(methods())
    assert "numpy" in host
    assert {"cupy", "torch", "cuda_pairwise"} <= gpu - host
