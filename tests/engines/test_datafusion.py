"""The aggregates of DataFusion have the values of rationals, and what its threads hand on are states."""

from fractions import Fraction

import datafusion
import numpy as np
import pyarrow as pa
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
from warpfold.engines import datafusion as exact
from warpfold.kernels.exact import ExactState

GROUPS = [column for column in [*COLUMNS.values(), *random_columns(11, 30)] if column]
KEYS, ELEMENTS = by_rows(GROUPS)
OTHERS = [*ELEMENTS[7:], *ELEMENTS[:7]]
PAIRS = pairs_by_key(KEYS, ELEMENTS, OTHERS)
ROWS = pa.record_batch({"k": KEYS, "x": pa.array(ELEMENTS, pa.float64()), "y": pa.array(OTHERS, pa.float64())})


@pytest.fixture(scope="module")
def context() -> datafusion.SessionContext:
    context = exact.register(datafusion.SessionContext())
    # Three partitions, so that states are merged.
    context.register_record_batches("t", [[ROWS.slice(at, 100)] for at in range(0, ROWS.num_rows, 100)])
    return context


def rows(context: datafusion.SessionContext, query: str) -> list[dict[str, object]]:
    listed: list[dict[str, object]] = context.sql(query).to_arrow_table().to_pylist()
    return listed


def expected_sum(number: object) -> float | None:
    column = GROUPS[int(str(number))]
    return true_sum(column) if present(column) else None


@pytest.mark.parametrize(
    ("total", "average"),
    [
        ("warpfold_sum(x)", "warpfold_mean(x)"),
        ("warpfold_state_sum(warpfold_state(x))", "warpfold_state_mean(warpfold_state(x))"),
        ("warpfold_list_sum(array_agg(x))", "warpfold_list_mean(array_agg(x))"),
    ],
)
def test_groups_have_the_sums_and_means_of_rationals(
    context: datafusion.SessionContext, total: str, average: str
) -> None:
    made = rows(context, f"SELECT k, {total} AS s, {average} AS m FROM t GROUP BY k")  # noqa: S608 - a test's own
    assert len(made) == len(GROUPS)
    for row in made:
        column = GROUPS[int(str(row["k"]))]
        nothing = "state_sum" in total and not present(column)
        assert same(row["s"], 0.0 if nothing else expected_sum(row["k"])), column  # type: ignore[arg-type]
        assert same(row["m"], true_mean(column)), column  # type: ignore[arg-type]


MOMENTS = ("var_pop", "var_samp", "stddev_pop", "stddev_samp", "norm1", "norm2", "sum_squares")


def test_groups_have_the_variances_norms_and_dot_products_of_rationals(context: datafusion.SessionContext) -> None:
    for call in ("warpfold_{}(x)", "warpfold_list_{}(array_agg(x))"):
        values = ", ".join(f"{call.format(name)} AS {name}" for name in MOMENTS)
        made = rows(context, f"SELECT k, {values}, warpfold_dot(x, y) AS dot FROM t GROUP BY k")  # noqa: S608
        for row in made:
            column, other = PAIRS[int(str(row["k"]))]
            for name, wanted in zip((*MOMENTS, "dot"), true_moments(column, other), strict=True):
                assert same(row[name], wanted), (name, column)  # type: ignore[arg-type]


def test_states_of_squares_and_products_merge(context: datafusion.SessionContext) -> None:
    parts = "SELECT k, warpfold_state(x) AS s, warpfold_squares(x) AS q, warpfold_products(x, y) AS p FROM t GROUP BY k"
    query = (
        "SELECT warpfold_state_var_pop(s, q) AS var, warpfold_state_norm2(q) AS norm, warpfold_state_count(p) AS n"
        " FROM (SELECT warpfold_merge(s) AS s, warpfold_merge(q) AS q, warpfold_merge(p) AS p FROM ({}))"
    )
    numbers = "x < 'Infinity' AND x > '-Infinity' AND y IS NOT NULL"
    made = rows(context, query.format(parts.replace("FROM t", f"FROM t WHERE {numbers}")))[0]
    column = [x for x, y in zip(ELEMENTS, OTHERS, strict=True) if x is not None and abs(x) < np.inf and y is not None]
    wanted = dict(zip((*MOMENTS, "dot"), true_moments(list(column), list(column)), strict=True))
    assert made == {"var": wanted["var_pop"], "norm": wanted["norm2"], "n": len(column)}


def test_states_of_groups_merge_to_the_state_of_all(context: datafusion.SessionContext) -> None:
    query = "SELECT warpfold_merge(s) AS s FROM (SELECT k, {} AS s FROM t GROUP BY k)"
    states = [
        rows(context, query.format(each))[0]["s"] for each in ("warpfold_state(x)", "warpfold_list_state(array_agg(x))")
    ]
    alone = rows(context, "SELECT warpfold_state(x) AS s FROM t")[0]["s"]
    assert states == [alone, alone]
    assert ExactState.from_bytes(bytes(alone)).count == len(present(ELEMENTS))  # type: ignore[call-overload]


def test_long_groups_go_to_an_accumulator_of_their_own(context: datafusion.SessionContext) -> None:
    count = (1 << 17) + 5000
    long = pa.record_batch({"x": pa.array([0.1, 0.3] * (count // 2)), "y": pa.array([1.0, None] * (count // 2))})
    context.register_record_batches("long", [pa.Table.from_batches([long]).to_batches(8192)])
    made = rows(context, "SELECT warpfold_sum(x) AS s, warpfold_dot(x, y) AS d, warpfold_var_pop(x) AS v FROM long")
    exact = Fraction(0.1), Fraction(0.3)
    assert made == [
        {
            "s": float(sum(exact, Fraction(0)) * (count // 2)),
            "d": float(exact[0] * (count // 2)),
            "v": float((exact[1] - exact[0]) ** 2 / 4),
        }
    ]


def test_bytes_that_are_no_state_are_refused(context: datafusion.SessionContext) -> None:
    with pytest.raises(Exception, match="magic"):
        rows(context, "SELECT warpfold_merge(arrow_cast('no state', 'LargeBinary')) FROM t")
