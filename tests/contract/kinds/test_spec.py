from typing import Any

import pytest

from warpfold.contract.kinds.spec import Changes, LeftOut
from warpfold.contract.tasks import TaskSpec, task_spec

BENCHMARK = {"kind": "benchmark", "strategies": ["numpy", "exact", "single_pass"][:2], "sizes": [10, 1000, 100000]}


def spec(**values: Any) -> TaskSpec:
    return task_spec.validate_python(values)


def test_nothing_asked_changes_nothing() -> None:
    benchmark = spec(**BENCHMARK)
    assert benchmark.changed(Changes()) is benchmark
    assert benchmark.changed(Changes(timeout_s=benchmark.timeout_s)) is benchmark


@pytest.mark.parametrize(("max_n", "sizes"), [(1000, (10, 1000)), (5, (5,)), (10**6, (10, 1000, 100000))])
def test_longer_arrays_are_left_out_or_cut_where_there_is_none_shorter(max_n: int, sizes: tuple[int, ...]) -> None:
    assert spec(**BENCHMARK).changed(Changes(max_n=max_n)).sizes == sizes  # type: ignore[union-attr]


def test_what_is_generated_is_cut_and_what_is_given_is_not() -> None:
    generated = {"type": "generate", "distribution": "normal", "n": 10**6, "seed": 3}
    source = {"type": "values", "values": [1, 2, 3], "dtype": "float64"}
    cut: Any = spec(kind="reduce", source=generated).changed(Changes(max_n=2))
    assert (cut.source.n, cut.source.seed) == (2, 3)
    kept: Any = spec(kind="reduce", source=source).changed(Changes(max_n=2))
    assert kept.source.values == (1, 2, 3)


def test_messages_of_all_reduces_are_cut_in_elements_of_eight_bytes() -> None:
    study: Any = spec(kind="scaling", messages=[8, 4096, 65536], ranks=[1, 2]).changed(Changes(max_n=512))
    assert study.messages == (8, 4096)


def test_limits_only_ever_shorten() -> None:
    quick: Any = spec(**BENCHMARK, time_limit_s=0.1, timeout_s=10).changed(Changes(time_limit_s=5.0, timeout_s=99.0))
    assert (quick.time_limit_s, quick.timeout_s) == (0.1, 10)
    quick = spec(**BENCHMARK).changed(Changes(time_limit_s=0.5, timeout_s=7.0))
    assert (quick.time_limit_s, quick.timeout_s) == (0.5, 7.0)


def test_a_benchmark_moves_with_the_strategies_that_are_there() -> None:
    both = spec(kind="benchmark", strategies=["exact", "single_pass"], sizes=[10])
    moved: Any = both.changed(Changes(backend="cpu"))
    assert (moved.backend, moved.strategies) == ("cpu", ("exact",))


@pytest.mark.parametrize(
    "values",
    [
        {**BENCHMARK, "strategies": ["single_pass"]},
        {**BENCHMARK, "strategies": ["exact"], "backend": "cuda"},
        {"kind": "reduce", "strategy": "two_pass", "source": {"type": "generate", "distribution": "normal", "n": 9}},
        {"kind": "cluster", "puzzle": "advanced", "backend": "cuda"},
    ],
)
def test_what_cannot_run_there_is_left_out_with_the_reason(values: dict[str, Any]) -> None:
    with pytest.raises(LeftOut, match=r"the job (measures|runs)|not on cpu"):
        spec(**values).changed(Changes(backend="cpu"))


def test_three_numbers_are_added_wherever() -> None:
    assert spec(kind="three_numbers").changed(Changes(backend="cuda")).kind == "three_numbers"
