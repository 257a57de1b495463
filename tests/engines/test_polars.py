"""The namespace `exact` of Polars has the values of rationals, eager and lazy, in every context."""

import re
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any, cast

import polars as pl
import pytest

from tests.support.hard_sums import (
    COLUMNS,
    by_rows,
    pairs_by_key,
    present,
    random_columns,
    same,
    true_mean,
    true_moments,
    true_sum,
)
from warpfold.engines import polars  # noqa: F401 - registers the namespace
from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.exact import ExactState

GROUPS = [column for column in [*COLUMNS.values(), *random_columns(7, 40)] if column]
KEYS, ELEMENTS = by_rows(GROUPS)
FRAME: Any = pl.DataFrame({"k": KEYS, "x": pl.Series(ELEMENTS, dtype=pl.Float64)})
X: Any = pl.col("x")


@pytest.mark.parametrize("engine", [None, "in-memory", "streaming"])
def test_groups_have_the_sums_and_means_of_rationals(engine: str | None) -> None:
    values = [X.exact.sum().alias("sum"), X.exact.mean().alias("mean")]
    if engine is None:
        grouped = FRAME.group_by("k").agg(values)
    else:
        grouped = FRAME.lazy().group_by("k").agg(values).collect(engine=engine)
    assert len(grouped) == len(GROUPS)
    for number, value, mean in grouped.iter_rows():
        assert same(value, true_sum(GROUPS[number])), GROUPS[number]
        assert same(mean, true_mean(GROUPS[number])), GROUPS[number]


def test_a_whole_column_has_its_value_in_every_context() -> None:
    finite = FRAME.filter(X.is_finite() | X.is_null())
    expected = true_sum(finite["x"].to_list())
    assert same(finite.select(X.exact.sum()).item(), expected)
    assert same(finite["x"].exact.sum(), expected)
    assert same(finite.lazy().select(X.exact.sum()).collect(engine="streaming").item(), expected)
    over = FRAME.with_columns(X.exact.sum().over("k").alias("y"))
    assert all(same(row["y"], true_sum(GROUPS[row["k"]])) for row in over.iter_rows(named=True))


def test_no_rows_have_the_sum_0_and_no_mean() -> None:
    empty = FRAME.head(0)
    assert empty.select(X.exact.sum()).item() == 0.0
    assert empty.select(X.exact.mean()).item() is None
    assert empty.group_by("k").agg(X.exact.sum()).is_empty()


@pytest.mark.parametrize("dtype", [pl.Int64, pl.UInt8, pl.Boolean, pl.Float32])
def test_a_sum_of_fewer_elements_than_it_needs_is_null(dtype: Any) -> None:
    frame = pl.DataFrame({"k": [1, 1, 2, 2], "x": [1, 1, 1, None]}, schema_overrides={"x": dtype}, strict=False)
    grouped = frame.group_by("k", maintain_order=True).agg(X.exact.sum(min_count=2))
    assert grouped.rows() == [(1, 2), (2, None)]
    assert frame.select(X.exact.sum(min_count=4)).item() is None


def test_a_lazy_frame_knows_its_dtypes_and_keeps_them() -> None:
    frame = pl.DataFrame({"k": [1, 1, 2], "x": [1, 0, 1]})
    kinds = {pl.Float32: pl.Float32, pl.Int8: pl.Int64, pl.UInt16: pl.UInt64, pl.Boolean: pl.UInt64}
    for dtype, summed in kinds.items():
        lazy = frame.lazy().with_columns(X.cast(dtype)).group_by("k").agg(X.exact.sum(), X.exact.mean().alias("mean"))
        computed = lazy.collect()
        assert lazy.collect_schema() == computed.schema
        assert computed.schema["x"] == summed
        assert computed.sort("k")["x"].to_list() == [1, 1]


def test_other_ops_are_those_of_a_series() -> None:
    column: Any = pl.Series([1.0, 2.0, 4.0, None])
    assert column.exact.var() == pytest.approx(column.var())
    assert column.exact.std(0) == pytest.approx(column.std(0))
    assert (column.exact.norm1(), column.exact.sum_squares()) == (7.0, 21.0)
    assert column.exact.norm2() == 21.0**0.5
    with pytest.raises(AttributeError, match="known: sum, mean"):
        column.exact.median()


def test_states_are_columns_that_merge() -> None:
    states = [part.group_by("k").agg(X.exact.state()) for part in (FRAME[:100], FRAME[100:])]
    merged = pl.concat(states).group_by("k").agg(X.exact.merge())
    values = merged.select("k", X.exact.state_sum(), X.exact.state_mean().alias("mean"))
    for number, value, mean in values.iter_rows():
        assert same(value, true_sum(GROUPS[number]))
        assert same(mean, true_mean(GROUPS[number]))
    whole = merged.select(X.exact.merge()).item()
    assert whole == FRAME["x"].exact.state()
    assert ExactState.from_bytes(whole).count == len(present(ELEMENTS))


def test_sums_that_do_not_fit_columns_of_words_and_damaged_states_are_refused() -> None:
    with pytest.raises(InvalidInput, match="does not fit Int64"):
        pl.DataFrame({"x": [2**62, 2**62]}).select(X.exact.sum())
    with pytest.raises(InvalidInput, match="magic"):
        pl.DataFrame({"x": [b"no state"]}).select(X.exact.merge())


@pytest.mark.parametrize(
    ("column", "message"),
    [
        (pl.Series("x", ["a"]), "holds large_string; integers, floats"),
        (pl.Series("x", [b"a"]), "holds large_binary; integers, floats"),
        (pl.Series("x", [[1]]), "holds large_list<item: int64>; integers, floats"),
        (pl.Series("x", [{"a": 1}]), "holds struct<a: int64>; integers, floats"),
        (pl.Series("x", [time(1)]), "holds time64[ns]; integers, floats"),
        (pl.Series("x", [timedelta(1)]), "holds duration[us]; integers, floats"),
        (pl.Series("x", [datetime(2020, 1, 1)]), "holds timestamp[us]; integers, floats"),
        (pl.Series("x", [date(2020, 1, 1)]), "holds date32[day]; integers, floats"),
        (pl.Series("x", [Decimal("0.1")]), "holds decimal128(38, 1); integers, floats"),
    ],
)
def test_a_column_that_is_not_added_is_named_with_its_type(column: pl.Series, message: str) -> None:
    frame = column.to_frame()
    for ask in (
        lambda: frame.select(X.exact.sum()),
        lambda: frame.lazy().select(X.exact.mean()).collect(),
        lambda: frame.with_columns(k=1).group_by("k").agg(X.exact.var()),
        lambda: frame.with_columns(k=1).select(X.exact.norm1().over("k")),
        lambda: frame.select(X.exact.dot(X)),
        cast("Any", frame["x"]).exact.sum,
    ):
        with pytest.raises(InvalidInput, match=re.escape(message)):
            ask()


def test_dot_products_and_states_of_squares_are_those_of_rationals() -> None:
    others: list[float | None] = [*ELEMENTS[7:], *ELEMENTS[:7]]
    frame: Any = FRAME.with_columns(pl.Series("y", others, dtype=pl.Float64))
    made = frame.group_by("k").agg(
        X.exact.dot("y").alias("dot"), X.exact.products("y").alias("p"), X.exact.squares().alias("q"),
        X.exact.state().alias("s"), X.exact.sum(min_count=3).alias("sum"),
    )  # fmt: skip
    pairs = pairs_by_key(KEYS, ELEMENTS, others)
    p, q, s = (cast(Any, pl.col(name)).exact for name in "pqs")
    values = made.select(
        "k", "dot", "sum", p.state_sum(), q.state_norm2(),
        s.state_var("q"), s.state_std(pl.col("q"), 0).alias("std"),
    )  # fmt: skip
    for number, dot, least, products, norm, var, std in values.iter_rows():
        column, other = pairs[number]
        _, wanted_var, wanted_std, _, _, wanted_norm, _, wanted_dot = true_moments(column, other)
        assert same(dot, wanted_dot or 0.0)
        assert same(products, wanted_dot or 0.0)
        assert same(norm, wanted_norm or 0.0)
        assert same(var, wanted_var)
        assert same(std, wanted_std)
        assert same(least, true_sum(column) if len(present(column)) >= 3 else None)
    x: Any = pl.Series([2, 3, None])
    assert x.exact.dot(pl.Series([2**40, 1, 5])) == 2**41 + 3
