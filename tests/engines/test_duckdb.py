"""The aggregates of DuckDB have the values of rationals, however its threads and windows pass their states on."""

import re
from fractions import Fraction

import duckdb
import numpy as np
import pyarrow as pa
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
from warpfold.engines import duckdb as exact
from warpfold.kernels.errors import Unavailable
from warpfold.kernels.exact import ExactState
from warpfold.kernels.ops import Terms

Connection = duckdb.DuckDBPyConnection
GROUPS = [column for column in [*COLUMNS.values(), *random_columns(13, 60)] if column]
KEYS, ELEMENTS = by_rows(GROUPS)
OTHERS = [*ELEMENTS[7:], *ELEMENTS[:7]]
"""A second column, from rows further on."""

PAIRS = pairs_by_key(KEYS, ELEMENTS, OTHERS)
TABLE = pa.table(
    {
        "k": KEYS,
        "x": pa.array(ELEMENTS, pa.float64()),
        "y": pa.array(OTHERS, pa.float64()),
        "n": list(range(len(KEYS))),
    }
)


def with_rows(connection: Connection) -> Connection:
    # Many row groups, so that several threads have states of every group.
    rows = connection.from_arrow(TABLE)
    rows.create("t")
    connection.execute("SET threads = 4")
    return connection


@pytest.fixture(scope="module")
def aggregates() -> Connection:
    return with_rows(exact.connect())


@pytest.fixture(scope="module", params=["aggregates", "macros"])
def connection(request: pytest.FixtureRequest, aggregates: Connection) -> Connection:
    return aggregates if request.param == "aggregates" else with_rows(exact.register_macros(duckdb.connect()))


def expected(column: Column) -> tuple[float | None, float | None]:
    """The sum and the mean, null of no elements."""
    return (true_sum(column) if present(column) else None), true_mean(column)


def test_groups_have_the_sums_and_means_of_rationals(connection: Connection) -> None:
    made = connection.execute("SELECT k, warpfold_sum(x), warpfold_mean(x) FROM t GROUP BY k").fetchall()
    assert len(made) == len(GROUPS)
    for number, value, mean in made:
        sum_of, mean_of = expected(GROUPS[number])
        assert same(value, sum_of), GROUPS[number]
        assert same(mean, mean_of), GROUPS[number]


def test_states_of_groups_and_parts_merge_to_the_state_of_all(connection: Connection) -> None:
    parts = "SELECT k, warpfold_state(x) AS s FROM t GROUP BY k, n % 3"
    merged = f"SELECT k, warpfold_merge(s) AS s FROM ({parts}) GROUP BY k"  # noqa: S608 - a test's own
    values = connection.execute(f"SELECT k, warpfold_state_sum(s), warpfold_state_mean(s) FROM ({merged})")  # noqa: S608
    for number, value, mean in values.fetchall():
        assert same(value, true_sum(GROUPS[number])), GROUPS[number]
        assert same(mean, true_mean(GROUPS[number])), GROUPS[number]
    whole = connection.execute(f"SELECT warpfold_merge(s) FROM ({merged})").fetchone()  # noqa: S608
    assert whole == (ExactState.of(np.array(present(ELEMENTS), np.float64)).to_bytes(),)
    assert connection.execute("SELECT warpfold_state(x) FROM t").fetchone() == whole


def test_groups_have_the_variances_norms_and_dot_products_of_rationals(connection: Connection) -> None:
    made = connection.execute(
        "SELECT k, warpfold_var_pop(x), warpfold_var_samp(x), warpfold_stddev_pop(x), warpfold_stddev_samp(x),"
        " warpfold_norm1(x), warpfold_norm2(x), warpfold_sum_squares(x), warpfold_dot(x, y) FROM t GROUP BY k"
    ).fetchall()
    assert len(made) == len(GROUPS)
    for number, *values in made:
        column, other = PAIRS[number]
        for value, wanted in zip(values, true_moments(column, other), strict=True):
            assert same(value, wanted), (column, other)


def test_states_of_squares_and_products_merge_and_have_variances(connection: Connection) -> None:
    connection.execute(
        "CREATE OR REPLACE TEMP TABLE parts AS SELECT k, warpfold_state(x) AS s, warpfold_squares(x) AS q,"
        " warpfold_products(x, y) AS p FROM t GROUP BY k, n % 3"
    )
    query = (
        "SELECT k, warpfold_state_var_pop(s, q), warpfold_state_var_samp(s, q), warpfold_state_stddev_pop(s, q),"
        " warpfold_state_stddev_samp(s, q), warpfold_state_norm2(q), warpfold_state_sum(p), warpfold_state_count(s), q"
        " FROM (SELECT k, warpfold_merge(s) AS s, warpfold_merge(q) AS q, warpfold_merge(p) AS p FROM parts GROUP BY k)"
    )
    for number, *values, count, squares in connection.execute(query).fetchall():
        column, other = PAIRS[number]
        *spreads, _, root, _, dot = true_moments(column, other)
        for value, wanted in zip(values, [*spreads, root or 0.0, 0.0 if dot is None else dot], strict=True):
            assert same(value, wanted), column
        assert count == len(present(column))
        assert squares == ExactState.of(np.array(present(column), np.float64), Terms.PRODUCTS).to_bytes()


def test_few_elements_are_null_where_a_query_asks_for_more(connection: Connection) -> None:
    query = "SELECT k, CASE WHEN count(x) >= 3 THEN warpfold_sum(x) END FROM t GROUP BY k"
    for number, value in connection.execute(query).fetchall():
        column = GROUPS[number]
        assert same(value, true_sum(column) if len(present(column)) >= 3 else None)


def test_threads_combine_states_of_many_row_groups(aggregates: Connection) -> None:
    # Exponents far apart, so that windows of threads differ and long limbs meet.
    query = "SELECT i % 7 AS k, (i % 5 - 2) * power(2::DOUBLE, (i % 11) * 90 - 450) AS x FROM range(700_000) r(i)"
    aggregates.execute(f"CREATE OR REPLACE TEMP TABLE wide AS {query}")
    made = dict(aggregates.execute("SELECT k, warpfold_sum(x) FROM wide GROUP BY k").fetchall())
    listed = aggregates.execute("SELECT k, x, count(*) AS n FROM wide GROUP BY k, x").fetchall()
    for key in range(7):
        assert made[key] == float(sum(Fraction(x) * n for k, x, n in listed if k == key))


def test_vectors_of_one_group_are_added_by_the_loops_of_single_sums(aggregates: Connection) -> None:
    # Vectors of 2,048 rows without nulls, beside one with nulls: both ways meet in one state.
    x = np.ldexp(np.random.default_rng(5).standard_normal(5000), np.arange(5000) % 2000 - 1000)
    for special in ([], [np.nan], [np.inf], [-0.0]):
        rows = [*x.tolist(), *special]
        aggregates.register("many", pa.table({"x": rows}))
        query = "SELECT warpfold_state(x) FROM {}"
        assert aggregates.execute(query.format("many")).fetchone() == (ExactState.of(np.array(rows)).to_bytes(),)
        with_nulls = "(SELECT x FROM many UNION ALL SELECT NULL FROM range(3000) UNION ALL SELECT x FROM many)"
        assert aggregates.execute(query.format(with_nulls)).fetchone() == (
            ExactState.of(np.array(rows * 2)).to_bytes(),
        )
    aggregates.register("zeros", pa.table({"x": [-0.0] * 3000}))
    assert same((aggregates.execute("SELECT warpfold_sum(x) FROM zeros").fetchone() or (None,))[0], -0.0)


@pytest.mark.parametrize("special", [[-np.inf], [np.inf, -np.inf], [-np.inf, np.nan], []])
def test_magnitudes_and_squares_of_long_vectors_have_no_sign(aggregates: Connection, special: list[float]) -> None:
    query = "SELECT warpfold_norm1(x), warpfold_sum_squares(x), warpfold_norm2(x), warpfold_dot(x, x) FROM long"
    aggregates.register("long", pa.table({"x": [-0.0] * 3000 + special}))
    wanted = float(np.abs(special).sum())
    assert all(same(value, wanted) for value in aggregates.execute(query).fetchone() or ())


def test_windows_slide_over_states(aggregates: Connection) -> None:
    finite = [0.0 if element is None or not np.isfinite(element) else element for element in ELEMENTS]
    aggregates.register("rows", pa.table({"n": list(range(len(finite))), "x": finite}))
    query = "SELECT n, warpfold_sum(x) OVER (ORDER BY n ROWS BETWEEN 30 PRECEDING AND CURRENT ROW) FROM rows"
    for at, value in aggregates.execute(query).fetchall():
        assert same(value, true_sum(list(finite[max(0, at - 30) : at + 1])))


def test_integers_are_not_rounded_before_they_are_added(aggregates: Connection) -> None:
    rows = "(VALUES (9007199254740993::BIGINT, 18446744073709551615::UBIGINT), (-9007199254740992, 1)) v(i, u)"
    query = f"SELECT warpfold_sum(i), warpfold_sum(u), warpfold_mean(i) FROM {rows}"  # noqa: S608
    assert aggregates.execute(query).fetchone() == (1.0, 2.0**64, 0.5)
    assert aggregates.execute("SELECT warpfold_sum(i::INTEGER) FROM range(10) r(i)").fetchone() == (45.0,)


ORDERED = (
    "warpfold_sum(x ORDER BY x)",
    "warpfold_mean(x ORDER BY n DESC)",
    "warpfold_dot(x, y ORDER BY y, n)",
    "warpfold_stddev_samp(x ORDER BY x DESC NULLS FIRST)",
    "warpfold_norm2(DISTINCT x ORDER BY x)",
    "warpfold_sum(x ORDER BY x) FILTER (n % 3 = 0)",
    "warpfold_state(x ORDER BY random())",
    "warpfold_sum(CASE WHEN n < 0 THEN x END ORDER BY n)",
    "warpfold_sum(n ORDER BY x)",
    "warpfold_merge(s ORDER BY s)",
)


@pytest.mark.parametrize("grouped", ["", " GROUP BY k", " WHERE n < 0", " WHERE k = 3"])
@pytest.mark.parametrize("call", ORDERED)
def test_an_order_within_an_aggregate_changes_nothing(aggregates: Connection, call: str, grouped: str) -> None:
    aggregates.execute(
        "CREATE OR REPLACE TEMP VIEW ordered AS SELECT *, warpfold_state(x) OVER (PARTITION BY k) s FROM t"
    )
    plain = re.sub(r" ORDER BY [^()]*(\(\))?", "", call)
    assert "ORDER" not in plain
    rows = aggregates.execute(f"SELECT {call}, {plain} FROM ordered{grouped}").fetchall()  # noqa: S608
    assert rows
    # DuckDB makes a zero positive that it orders by.
    assert all(value == wanted or same(value, wanted) for value, wanted in rows)


def test_an_order_of_many_vectors_of_groups(aggregates: Connection) -> None:
    query = "SELECT k, warpfold_sum(x ORDER BY -x), warpfold_sum(x) FROM wide GROUP BY k"
    aggregates.execute("CREATE OR REPLACE TEMP TABLE wide AS SELECT i % 7 AS k, sin(i) AS x FROM range(70_000) r(i)")
    assert all(value == wanted for _, value, wanted in aggregates.execute(query).fetchall())


@pytest.mark.parametrize(
    "frame",
    [
        "()",
        "(PARTITION BY k)",
        "(PARTITION BY n % 2)",
        "(ORDER BY n ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING)",
        "(PARTITION BY k ORDER BY n RANGE BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING)",
        "(PARTITION BY n < 0)",
    ],
)
@pytest.mark.parametrize("call", ["sum(x)", "dot(x, y)", "var_pop(x)", "sum(x) FILTER (n % 3 = 0)", "sum(DISTINCT x)"])
def test_a_frame_of_all_rows_has_the_value_of_its_group(aggregates: Connection, call: str, frame: str) -> None:
    keys = {"(PARTITION BY k)": "k", "(PARTITION BY n % 2)": "n % 2"}.get(frame, "k" if "BY k" in frame else "0")
    query = f"SELECT DISTINCT {keys} AS g, warpfold_{call} OVER {frame} FROM t"  # noqa: S608
    wanted = dict(aggregates.execute(f"SELECT {keys} AS g, warpfold_{call} FROM t GROUP BY ALL").fetchall())  # noqa: S608
    rows = aggregates.execute(query).fetchall()
    assert {key for key, _ in rows} == set(wanted)
    assert all(same(value, wanted[key]) for key, value in rows)


@pytest.mark.parametrize("asked", ["(x ORDER BY x)", "(DISTINCT x)", "(x) FILTER (x > 1)", "(x) OVER ()"])
def test_macros_refuse_what_only_aggregates_take(asked: str) -> None:
    with exact.register_macros(duckdb.connect()) as connection:
        with pytest.raises(duckdb.Error, match=r"only applicable to aggregate functions|is not an aggregate function"):
            connection.execute(f"SELECT warpfold_sum{asked} FROM range(3) t(x)")  # noqa: S608
        assert connection.execute("SELECT warpfold_sum(x) FROM range(3) t(x)").fetchone() == (3.0,)


MOST, LEAST = 2**64 - 1, -(2**63)


@pytest.mark.parametrize(
    ("call", "rows", "wanted"),
    [
        ("sum(x)", [("BIGINT", 2**53 + 1), ("BIGINT", -(2**53))], 1.0),
        ("sum(-x)", [("BIGINT", 2**53 + 1), ("BIGINT", -(2**53))], -1.0),
        ("mean(x)", [("BIGINT", 2**53 + 1), ("BIGINT", -(2**53))], 0.5),
        ("stddev_pop(x)", [("BIGINT", 2**53 + 1), ("BIGINT", 2**53)], 0.5),
        ("var_samp(x)", [("UBIGINT", MOST), ("UBIGINT", MOST - 1)], 0.5),
        ("sum(x)", [("UBIGINT", MOST), ("UBIGINT", MOST)], 2.0**65),
        ("norm1(x)", [("BIGINT", LEAST), ("BIGINT", 2**53 + 1)], float(2**63 + 2**53 + 1)),
        ("norm2(x)", [("BIGINT", 2**53 + 1)], float(2**53 + 1)),
        ("sum_squares(x)", [("BIGINT", 2**40 + 1)], float((2**40 + 1) ** 2)),
        ("dot(x, x)", [("UBIGINT", MOST), ("UBIGINT", 1)], float(MOST**2 + 1)),
        ("dot(x, x - 1)", [("UBIGINT", MOST)], float(MOST * (MOST - 1))),
        ("sum(x)", [("INTEGER", -7), ("INTEGER", 5)], -2.0),
        ("sum(x)", [("UTINYINT", 255), ("UTINYINT", 1)], 256.0),
        ("sum(x)", [("FLOAT", 0.1)], float(np.float32(0.1))),
        ("dot(x, 0.5::DOUBLE)", [("BIGINT", 2**53), ("BIGINT", None), ("BIGINT", 2)], 2.0**52 + 1),
        ("dot(0.5::DOUBLE, x)", [("INTEGER", 3), ("INTEGER", -1)], 1.0),
        ("dot(x, 3::UBIGINT)", [("BIGINT", -(2**53) - 1), ("BIGINT", 2**53)], -3.0),
        ("state_count(warpfold_products(x, 1::DOUBLE))", [("BIGINT", None), ("BIGINT", 4)], 1),
        ("state_sum(warpfold_state(x))", [("BIGINT", 2**53 + 1), ("BIGINT", -(2**53))], 1.0),
    ],
)
def test_integers_are_added_and_multiplied_as_they_are(
    connection: Connection, call: str, rows: list[tuple[str, float | None]], wanted: float
) -> None:
    values = ", ".join(f"(({'NULL' if value is None else value})::{kind})" for kind, value in rows)
    query = f"SELECT warpfold_{call} FROM (VALUES {values}) v(x)"  # noqa: S608
    assert connection.execute(query).fetchone() == (wanted,)


@pytest.mark.parametrize(
    ("call", "why"),
    [
        ("sum(1::HUGEINT)", "HUGEINT|decimal128"),
        ("mean(1::UHUGEINT)", "UHUGEINT|decimal128"),
        ("stddev_pop(0.1)", "DECIMAL.*sum is exact|decimal128"),
        ("sum(1.5::DECIMAL(38, 10))", "DECIMAL|decimal128"),
        ("norm1(1::BIGNUM)", "BIGNUM|bignum"),
        ("dot(0.1, 2::DOUBLE)", "DECIMAL|decimal128"),
        ("products(1, 2::HUGEINT)", "HUGEINT|decimal128"),
        ("dot(9007199254740993, 1::DOUBLE)", "9007199254740993 is no float64"),
        ("dot(18446744073709551615::UBIGINT, 1::DOUBLE)", "18446744073709551615 is no float64"),
        ("dot(9007199254740993::UBIGINT, 1::DOUBLE)", "9007199254740993 is no float64"),
        ("sum(DATE '2026-01-01')", "No function matches|date32"),
        ("mean(INTERVAL 1 DAY)", "No function matches|interval"),
        ("sum('1.5')", "No function matches|string"),
    ],
)
def test_what_would_be_rounded_or_is_no_number_is_refused(connection: Connection, call: str, why: str) -> None:
    with pytest.raises(duckdb.Error, match=why):
        connection.execute(f"SELECT warpfold_{call}").fetchall()
    assert connection.execute("SELECT warpfold_sum(1::DOUBLE)").fetchone() == (1.0,)


def test_integers_of_both_ends_of_64_bits_are_not_multiplied(aggregates: Connection) -> None:
    with pytest.raises(duckdb.InvalidInputException, match="no dot product takes both"):
        aggregates.execute("SELECT warpfold_dot(18446744073709551615::UBIGINT, -1)").fetchall()


def test_other_connections_of_the_database_have_the_aggregates(aggregates: Connection) -> None:
    with aggregates.cursor() as cursor:
        assert cursor.execute("SELECT warpfold_sum(x) FROM t WHERE k < 0").fetchone() == (None,)
    assert exact.register(aggregates) is aggregates


def damaged(state: bytes) -> list[tuple[bytes, str]]:
    version = state[:4] + b"\x02" + state[5:]
    return [
        (b"no state", "magic"),
        (version, "version 2 is not known"),
        (state[:-1], "length"),
        (state[:5] + b"\x07" + state[6:], "terms"),
        (b"WF", "magic"),
    ]


def test_bytes_that_are_no_state_are_refused(aggregates: Connection) -> None:
    for bytes_, message in damaged(ExactState.of(np.ones(2)).to_bytes()):
        with pytest.raises(duckdb.InvalidInputException, match=message):
            aggregates.execute("SELECT warpfold_merge(?::BLOB)", [bytes_]).fetchall()
    products = ExactState.of(np.ones(2), Terms.PRODUCTS).to_bytes()
    values = ExactState.of(np.ones(2)).to_bytes()
    with pytest.raises(duckdb.InvalidInputException, match="sums of different things"):
        aggregates.execute("SELECT warpfold_merge(s) FROM (VALUES (?::BLOB), (?)) v(s)", [products, values]).fetchall()
    assert aggregates.execute("SELECT warpfold_sum(1::DOUBLE)").fetchone() == (1.0,)


def test_a_connection_that_does_not_allow_extensions_is_told_how() -> None:
    with duckdb.connect() as connection, pytest.raises(Unavailable, match="allow_unsigned_extensions"):
        exact.register(connection)
