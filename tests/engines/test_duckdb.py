"""The aggregates of DuckDB have the values of rationals, however its threads and windows pass their states on."""

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
