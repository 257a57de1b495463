import itertools
from typing import Any

import pytest

from warpfold.kernels.bench.data import Data
from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.scaling.axes import Algorithm, Method, Mode, Scaling
from warpfold.kernels.scaling.study import ArrayCase, Study, shard


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"sizes": ()}, "sizes"),
        ({"sizes": (10, 10)}, "sizes"),
        ({"ranks": ()}, "ranks"),
        ({"ranks": (0,)}, "ranks"),
        ({"ranks": (65,)}, "ranks"),
        ({"modes": ()}, "modes"),
        ({"methods": ()}, "methods"),
        ({"algorithms": (Algorithm.RING, Algorithm.RING)}, "algorithms"),
        ({"messages": (12,)}, "messages"),
        ({"messages": (4,)}, "messages"),
        ({"messages": (1 << 35,)}, "messages"),
        ({"dtype": "int32"}, "dtype"),
        ({"sizes": (3,), "ranks": (4,)}, "sizes"),
        ({"data": Data("mixed"), "dtype": "float16"}, "source.distribution"),
    ],
)
def test_an_impossible_study_names_the_field(changes: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidInput) as error:
        Study(**{"sizes": (1000,), **changes})
    assert error.value.field == field


def test_every_point_is_counted_once() -> None:
    study = Study(sizes=(1000, 2000), sizes_per_rank=(500,), messages=(8, 16), ranks=(1, 2, 4))
    cases = list(study.arrays())
    assert len(set(cases)) == len(cases)
    # 2 methods × 3 arrays: alone, and in 2 modes × 2 algorithms × 2 counts of ranks; as many groups × 2 messages
    assert (len(cases), len(list(study.exchanges()))) == (2 * 3 * (1 + 8), 8 * 2)
    assert len(study) == len(cases) + 16


def test_what_is_compared_with_is_measured_even_if_one_rank_was_not_asked_for() -> None:
    study = Study(sizes=(1000,), sizes_per_rank=(500,), ranks=(2,), methods=(Method.EXACT,))
    assert [(case.scaling, case.n) for case in study.alone()] == [(Scaling.STRONG, 1000), (Scaling.WEAK, 500)]


def test_weak_scaling_grows_the_array_and_compares_with_one_part() -> None:
    study = Study(sizes_per_rank=(500,), ranks=(4,), methods=(Method.EXACT,))
    (case,) = study.together(Mode.ONE_PROCESS, Algorithm.RING, 4)
    assert (case.n, case.baseline_n) == (2000, 500)
    assert ArrayCase(Scaling.STRONG, Method.EXACT, Mode.ONE_PROCESS, Algorithm.RING, 4, 2000).baseline_n == 2000


@pytest.mark.parametrize(("n", "ranks"), [(10, 1), (10, 3), (7, 7), (1_000_003, 8)])
def test_parts_follow_each_other_and_differ_by_at_most_one(n: int, ranks: int) -> None:
    parts = [shard(n, ranks, rank) for rank in range(ranks)]
    assert parts[0][0] == 0
    assert parts[-1][1] == n
    assert all(a[1] == b[0] for a, b in itertools.pairwise(parts))
    sizes = [stop - start for start, stop in parts]
    assert max(sizes) - min(sizes) <= 1
