import pytest

from warpfold.kernels.bench.axes import MAX_CASES, Axes, Cache, Case
from warpfold.kernels.errors import InvalidInput


def axes(**changes: object) -> Axes:
    values: dict[str, object] = {
        "strategies": ("exact", "pairwise"),
        "ops": ("sum",),
        "dtypes": ("float32",),
        "sizes": (10, 1000),
        "caches": (Cache.COLD, Cache.HOT),
    }
    return Axes(**{**values, **changes})  # type: ignore[arg-type]


def test_the_cases_are_the_product_of_the_axes() -> None:
    cases = list(axes().cases())
    assert len(cases) == len(axes()) == 8
    assert len(set(cases)) == 8
    assert Case("pairwise", "sum", "float32", 1000, Cache.HOT) in cases


def test_strategies_to_be_compared_follow_each_other_on_the_same_data() -> None:
    cases = list(axes().cases())
    for first, second in zip(cases[::2], cases[1::2], strict=True):
        assert (first.strategy, second.strategy) == ("exact", "pairwise")
        assert (first.n, first.cache) == (second.n, second.cache)
    assert [case.n for case in cases] == [10] * 4 + [1000] * 4


def test_a_thousand_cases_are_allowed_and_one_more_value_is_not() -> None:
    assert len(axes(sizes=tuple(range(250)))) == MAX_CASES
    with pytest.raises(InvalidInput, match="caches make 1,004 combinations; the most is 1,000") as caught:
        axes(sizes=tuple(range(251)))
    assert caught.value.field == "sizes"


@pytest.mark.parametrize("axis", ["strategies", "ops", "dtypes", "sizes", "caches"])
def test_an_empty_axis_is_named(axis: str) -> None:
    with pytest.raises(InvalidInput, match="at least one value") as caught:
        axes(**{axis: ()})
    assert caught.value.field == axis


def test_a_repeated_value_is_named() -> None:
    with pytest.raises(InvalidInput, match="each value once") as caught:
        axes(sizes=(1, 2, 1))
    assert caught.value.field == "sizes"
