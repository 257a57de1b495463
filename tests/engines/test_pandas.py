"""Series, frames and groups of pandas have the values of rationals, in the shapes that pandas gives them."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

from tests.support.hard_sums import (
    COLUMNS,
    Column,
    by_rows,
    pairs_by_key,
    present,
    random_columns,
    same,
    true_mean,
    true_moments,
    true_sum,
)
from warpfold.engines import pandas as exact
from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.exact import ExactState

GROUPS = [column for column in [*COLUMNS.values(), *random_columns(5, 40)] if column]
KEYS, ELEMENTS = by_rows(GROUPS)
FRAME = pd.DataFrame({"k": KEYS, "x": pd.array(ELEMENTS, pd.Float64Dtype())})
SALES = pd.DataFrame(
    {
        "region": pd.Categorical(["b", "a", None, "b"], categories=["c", "b", "a"]),
        "year": [1, 1, 2, 2],
        "price": [1.5, 2.0, 3.0, np.nan],
        "sold": [3, 1, 2, 2**62],
    }
)


def test_groups_have_the_sums_and_means_of_rationals() -> None:
    # An array of pandas that is made of NaN and None has nulls for both, so that groups with a NaN are left out.
    sums, means = exact.sum(FRAME.groupby("k").x), exact.mean(FRAME.groupby("k").x)
    for number, column in enumerate(GROUPS):
        if any(element is not None and math.isnan(element) for element in column):
            continue
        assert same(float(sums[number]), true_sum(column)), column
        mean = true_mean(column)
        assert pd.isna(means[number]) if mean is None else same(float(means[number]), mean), column


def test_the_same_function_serves_agg() -> None:
    fast, by_group = exact.sum(FRAME.groupby("k").x), FRAME.groupby("k").x.agg(exact.sum)
    assert fast.astype(float).equals(by_group.astype(float))


@pytest.mark.parametrize(
    "options",
    [
        {"by": "region", "observed": False},
        {"by": "region", "observed": True, "sort": False, "dropna": False},
        {"by": ["region", "year"], "observed": True, "as_index": False},
        {"by": ["year", "region"], "observed": False},
        {"by": [0, 1, 0, 1], "observed": True},
    ],
)
def test_the_result_has_the_index_and_the_columns_of_pandas(options: dict[str, Any]) -> None:
    numbers = SALES.drop(columns="region") if options["by"] == [0, 1, 0, 1] else SALES
    for made, expected in (
        (numbers.groupby(**options), numbers.groupby(**options).sum()),
        (numbers.groupby(**options)[["sold"]], numbers.groupby(**options)[["sold"]].sum()),
        (numbers.groupby(**options).sold, numbers.groupby(**options).sold.sum()),
    ):
        assert exact.sum(made).equals(expected)
        assert exact.sum(made).index.equals(expected.index)


def test_missing_elements_are_left_out_unless_they_count() -> None:
    prices = SALES.groupby("year").price
    assert exact.sum(prices).tolist() == [3.5, 3.0]
    assert exact.sum(prices, skipna=False).isna().tolist() == [False, True]
    assert exact.sum(prices, min_count=2).isna().tolist() == [False, True]
    assert np.isnan(exact.sum(SALES.price, skipna=False))
    nullable = SALES.assign(price=SALES.price.astype("Float64"))
    assert exact.sum(nullable.groupby("year").price, skipna=False).isna().tolist() == [False, True]
    assert np.isnan(exact.sum(nullable.price, skipna=False))
    assert exact.sum(SALES.groupby("year").sold, min_count=3).isna().all()


def test_columns_keep_their_dtypes() -> None:
    x = pd.Series([1, 0, 1])
    kinds = {"float32": "float32", "int8": "int64", "uint16": "uint64", "bool": "uint64", "Int32": "int64"}
    for dtype, summed in kinds.items():
        column = x.astype(dtype)
        assert exact.sum(column) == 2
        made = exact.sum(column.groupby([0, 0, 1]))
        assert (made.tolist(), made.dtype == "int64" if summed != "float32" else made.dtype == "float32") == (
            [1, 1],
            True,
        )
    arrow = pd.Series([1.5, None], dtype="float64[pyarrow]")
    assert exact.sum(arrow) == 1.5


def test_a_frame_gives_a_value_for_each_column() -> None:
    numbers = SALES[["price", "sold"]]
    assert numbers.exact.sum().tolist() == [6.5, 2**62 + 6]
    assert SALES[["price", "year"]].exact.sum().dtype == np.float64
    assert SALES.price.exact.var() == pytest.approx(SALES.price.var())
    assert SALES.price.exact.std(ddof=0) == pytest.approx(SALES.price.std(ddof=0))
    assert SALES.price.exact.norm2() == pytest.approx(np.sqrt(15.25))
    assert (SALES.price.exact.norm1(), SALES.price.exact.sum_squares(), SALES.price.exact.mean()) == (
        6.5,
        15.25,
        6.5 / 3,
    )


def test_columns_of_one_name_have_a_value_each() -> None:
    frame = pd.DataFrame({"k": [0, 1], "x": [1.5, 2.0], "y": [2**53 + 1, 2]}).set_axis(["k", "x", "x"], axis=1)
    sums = exact.sum(frame[["x"]])
    assert (sums.index.tolist(), sums.tolist()) == (["x", "x"], [3.5, 2**53 + 3])
    made = exact.sum(frame.groupby("k"))
    assert made.columns.tolist() == ["x", "x"]
    assert [made.iloc[:, at].tolist() for at in (0, 1)] == [[1.5, 2.0], [2**53 + 1, 2]]


def test_states_are_columns_that_merge() -> None:
    states = [exact.state(part.groupby("k").x) for part in (FRAME[:100], FRAME[100:])]
    merged = exact.merge(pd.concat(states).groupby(level=0))
    sums = exact.state_sum(merged)
    assert sums.equals(exact.sum(FRAME.groupby("k").x).astype(float))
    assert exact.state_mean(merged)[0] == exact.mean(FRAME.groupby("k").x)[0]
    assert exact.merge(merged) == exact.state(FRAME.x)
    assert ExactState.from_bytes(SALES.price.exact.state()).count == 3


def test_columns_that_hold_no_numbers_and_sums_that_do_not_fit_are_refused() -> None:
    with pytest.raises(InvalidInput, match="'region' holds category"):
        exact.sum(SALES.groupby("year"))
    with pytest.raises(InvalidInput, match="'t' holds datetime64"):
        exact.sum(pd.DataFrame({"t": pd.to_datetime(["2020-01-01"])}))
    with pytest.raises(InvalidInput, match="does not fit 64 bits"):
        exact.sum(pd.Series([2**63 - 1] * 4))
    with pytest.raises(InvalidInput, match="does not fit 64 bits"):
        exact.sum(pd.Series([2**63 - 1] * 4).groupby([0, 0, 0, 0]))
    with pytest.raises(TypeError, match="groups of these"):
        exact.sum([1.0])


def test_dot_products_and_states_of_squares_are_those_of_rationals() -> None:
    columns: list[Column] = [column for column in random_columns(23, 12) if present(column)]
    keys, elements = by_rows(columns)
    others = [*elements[7:], *elements[:7]]
    frame = pd.DataFrame({"k": keys, "x": pd.Series(elements, dtype=float), "y": pd.Series(others, dtype=float)})
    groups = frame.groupby("k")
    dots, states, squares = exact.dot(groups, ("x", "y")), exact.state(groups.x), exact.squares(groups.x)
    values = pd.DataFrame(
        {
            "dot": dots,
            "products": exact.state_sum(exact.products(groups, ("x", "y"))),
            "norm": exact.state_norm2(squares),
            "var": exact.state_var(states, squares),
            "std": exact.state_std(states, squares, ddof=0),
        }
    )
    for number, (column, other) in enumerate(pairs_by_key(keys, elements, others)):
        _, var, std, _, _, norm, _, dot = true_moments(column, other)
        wanted = [dot or 0.0, dot or 0.0, norm, np.nan if var is None else var, std]
        assert all(map(same, values.loc[number], wanted)), column
    whole = true_moments(elements, others)[-1]
    assert same(float(exact.dot(frame.x, frame.y)), whole)
    assert exact.state_sum(pd.Series([exact.products(frame.x, frame.y)])).tolist() == [whole]
    with pytest.raises(InvalidInput, match="not the same labels"):
        exact.dot(frame.x, frame.y[:3])


LABELLED = pd.Series([1.0, 2.0, 4.0], index=["a", "b", "c"])


@pytest.mark.parametrize(
    ("y", "wanted"),
    [
        (pd.Series([1.0, 10.0, 100.0], index=["a", "b", "c"]), 421.0),
        (pd.Series([1.0, 10.0, 100.0], index=["c", "b", "a"]), 124.0),
        (pd.Series([1.0, 10.0, 100.0], index=["b", "c", "a"]), 142.0),
        (pd.Series([1.0, None, 100.0], index=["b", "c", "a"]), 102.0),
        (pd.Series([1.0, 10.0, 100.0], index=["b", "c", "a"], dtype="Float64"), 142.0),
    ],
)
def test_series_are_multiplied_by_their_labels(y: "pd.Series[Any]", wanted: float) -> None:
    assert exact.dot(LABELLED, y) == wanted
    assert exact.products(LABELLED, y) == exact.products(LABELLED, y.reindex(LABELLED.index))


TWICE = pd.Series([1.0, 2.0, 4.0], index=[0, 0, 1])


@pytest.mark.parametrize(
    ("x", "y"),
    [
        (LABELLED, pd.Series([1.0, 10.0, 100.0])),
        (LABELLED, pd.Series([1.0, 10.0, 100.0], index=["a", "b", "d"])),
        (LABELLED, pd.Series([1.0, 10.0], index=["a", "b"])),
        (LABELLED, pd.Series([1.0] * 4, index=["a", "b", "c", "d"])),
        (LABELLED, pd.Series([1.0, 2.0, 3.0], index=["a", "b", "b"])),
        (TWICE, TWICE.iloc[::-1]),
        (TWICE, pd.Series([1.0, 2.0, 4.0])),
        (LABELLED, LABELLED.iloc[:0]),
    ],
)
@pytest.mark.parametrize("call", [exact.dot, exact.products, exact.state_var, exact.state_std])
def test_series_of_other_labels_are_refused(
    x: "pd.Series[Any]", y: "pd.Series[Any]", call: Callable[..., object]
) -> None:
    with pytest.raises(InvalidInput, match=r"not the same labels.*x\.align"):
        call(x, y)


def test_labels_that_occur_twice_in_one_order_are_taken() -> None:
    assert exact.dot(TWICE, TWICE.copy()) == 21.0


def test_variances_of_states_go_by_their_labels() -> None:
    groups = pd.DataFrame({"k": [1, 1, 2, 2], "x": [1.0, 2.0, 4.0, 8.0]}).groupby("k").x
    sums, squares = exact.state(groups), exact.squares(groups)
    assert exact.state_var(sums, squares.iloc[::-1]).to_dict() == {1: 0.5, 2: 8.0}


def test_groups_go_by_the_labels_of_their_keys() -> None:
    keys = pd.Series(["p", "q", "p"], index=["c", "a", "b"])
    assert exact.sum(LABELLED.groupby(keys)).to_dict() == LABELLED.groupby(keys).sum().to_dict() == {"p": 6.0, "q": 1.0}
    assert exact.sum(LABELLED.groupby(keys.iloc[:2])).to_dict() == {"p": 4.0, "q": 1.0}
