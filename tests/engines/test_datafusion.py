"""The aggregates of DataFusion have the values of rationals, and what its threads hand on are states."""

from decimal import Decimal
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
        ("warpfold_sum(struct(x))", "warpfold_mean(struct(x))"),
        ("warpfold_state_sum(warpfold_state(struct(x)))", "warpfold_state_mean(warpfold_state(struct(x)))"),
        ("warpfold_list_sum(struct(array_agg(x)))", "warpfold_list_mean(struct(array_agg(x)))"),
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
    for call in ("warpfold_{}(struct(x))", "warpfold_list_{}(struct(array_agg(x)))"):
        values = ", ".join(f"{call.format(name)} AS {name}" for name in MOMENTS)
        made = rows(context, f"SELECT k, {values}, warpfold_dot(struct(x, y)) AS dot FROM t GROUP BY k")  # noqa: S608
        for row in made:
            column, other = PAIRS[int(str(row["k"]))]
            for name, wanted in zip((*MOMENTS, "dot"), true_moments(column, other), strict=True):
                assert same(row[name], wanted), (name, column)  # type: ignore[arg-type]


def test_states_of_squares_and_products_merge(context: datafusion.SessionContext) -> None:
    parts = (
        "SELECT k, warpfold_state(struct(x)) AS s, warpfold_squares(struct(x)) AS q,"
        " warpfold_products(struct(x, y)) AS p FROM t GROUP BY k"
    )
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
        rows(context, query.format(each))[0]["s"]
        for each in ("warpfold_state(struct(x))", "warpfold_list_state(struct(array_agg(x)))")
    ]
    alone = rows(context, "SELECT warpfold_state(struct(x)) AS s FROM t")[0]["s"]
    assert states == [alone, alone]
    assert ExactState.from_bytes(bytes(alone)).count == len(present(ELEMENTS))  # type: ignore[call-overload]


def test_long_groups_go_to_an_accumulator_of_their_own(context: datafusion.SessionContext) -> None:
    count = (1 << 17) + 5000
    long = pa.record_batch({"x": pa.array([0.1, 0.3] * (count // 2)), "y": pa.array([1.0, None] * (count // 2))})
    context.register_record_batches("long", [pa.Table.from_batches([long]).to_batches(8192)])
    made = rows(
        context,
        "SELECT warpfold_sum(struct(x)) AS s, warpfold_dot(struct(x, y)) AS d, warpfold_var_pop(struct(x)) AS v"
        " FROM long",
    )
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


BIGINTS = [2**53 + 1, None, 2**63 - 1, -(2**63), 7, 2**62 + 3, -5]
OTHER_BIGINTS = [3, 1, 2**62 + 1, -(2**61) - 1, None, 1, 1]


@pytest.fixture(scope="module")
def typed(context: datafusion.SessionContext) -> datafusion.SessionContext:
    """A table with a column of each type that DataFusion would convert to DOUBLE, or to a list of DOUBLE."""
    columns = {
        "n": pa.array(BIGINTS, pa.int64()),
        "o": pa.array(OTHER_BIGINTS, pa.int64()),
        "d": pa.array([Decimal("0.1")] * len(BIGINTS), pa.decimal128(20, 1)),
        "u": pa.array([2**64 - 1] * len(BIGINTS), pa.uint64()),
        "i": pa.array([1] * len(BIGINTS), pa.int32()),
        "f": pa.array([0.1] * len(BIGINTS), pa.float32()),
        "b": pa.array([True] * len(BIGINTS)),
        "w": pa.array(["1"] * len(BIGINTS)),
        "t": pa.array([1] * len(BIGINTS), pa.timestamp("ns")),
    }
    table = pa.record_batch(columns)
    context.register_record_batches("typed", [[table.slice(at, 2)] for at in range(0, table.num_rows, 2)])
    return context


@pytest.mark.parametrize("form", ["warpfold_bigint_{}(struct(n))", "warpfold_bigint_list_{}(struct(array_agg(n)))"])
def test_integers_beyond_double_are_added_as_they_are(typed: datafusion.SessionContext, form: str) -> None:
    values = ", ".join(f"{form.format(name)} AS {name}" for name in ("sum", "mean", *MOMENTS))
    made = rows(typed, f"SELECT {values} FROM typed")[0]  # noqa: S608 - a test's own
    column = [Fraction(n) for n in BIGINTS if n is not None]
    total, squares = sum(column, Fraction(0)), sum((n * n for n in column), Fraction(0))
    mean = total / len(column)
    spread = sum(((n - mean) ** 2 for n in column), Fraction(0))
    assert made["sum"] == float(total)
    assert made["mean"] == float(mean)
    assert made["norm1"] == float(sum(abs(n) for n in column))
    assert made["sum_squares"] == float(squares)
    assert made["var_pop"] == float(spread / len(column))
    assert made["var_samp"] == float(spread / (len(column) - 1))


def test_products_of_integers_are_exact(typed: datafusion.SessionContext) -> None:
    made = rows(typed, "SELECT warpfold_bigint_dot(struct(n, o)) AS d FROM typed")[0]["d"]
    pairs = zip(BIGINTS, OTHER_BIGINTS, strict=True)
    assert made == float(sum(n * o for n, o in pairs if n is not None and o is not None))


@pytest.mark.parametrize("column", ["n", "d", "u", "i", "f", "b", "w", "t"])
@pytest.mark.parametrize("function", ["", "bigint_"])
def test_no_column_is_converted_in_silence(typed: datafusion.SessionContext, function: str, column: str) -> None:
    calls = [
        f"warpfold_{function}sum({column})",
        f"warpfold_{function}list_sum(array_agg({column}))",
        f"warpfold_{function}dot({column}, {column})",
    ]
    if (function, column) != ("bigint_", "n"):
        calls += [
            f"warpfold_{function}sum(struct({column}))",
            f"warpfold_{function}list_sum(struct(array_agg({column})))",
            f"warpfold_{function}dot(struct({column}, {column}))",
        ]
    for call in calls:
        with pytest.raises(Exception, match=r"coerce arguments|expects \d arguments|number of arguments"):
            rows(typed, f"SELECT {call} FROM typed")  # noqa: S608 - a test's own
