"""The aggregates of Postgres, in SQL alone, have the values of rationals and the bytes of states."""

import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import psycopg
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
from tests.support.servers import fresh_database
from warpfold.engines import postgres
from warpfold.kernels.exact import ExactState
from warpfold.kernels.ops import Terms
from warpfold.worker.embedded.postgres import EmbeddedPostgres

GROUPS = [column for column in [*COLUMNS.values(), *random_columns(17, 12, most=12)] if column]
KEYS, ELEMENTS = by_rows(GROUPS)
OTHERS = [*ELEMENTS[7:], *ELEMENTS[:7]]
PAIRS = pairs_by_key(KEYS, ELEMENTS, OTHERS)


@pytest.fixture(scope="module")
def connection(shared_postgres: EmbeddedPostgres) -> Iterator[psycopg.Connection[Any]]:
    with fresh_database(shared_postgres) as url, psycopg.connect(url, autocommit=True) as connection:
        connection.execute(postgres.script().encode())
        connection.execute("SET search_path TO public, warpfold")
        connection.execute("CREATE TABLE t (k integer, x double precision, y double precision)")
        with connection.cursor() as cursor:
            cursor.executemany("INSERT INTO t VALUES (%s, %s, %s)", list(zip(KEYS, ELEMENTS, OTHERS, strict=True)))
        yield connection


def test_groups_have_the_sums_means_and_states_of_rationals(connection: psycopg.Connection[Any]) -> None:
    query = "SELECT k, warpfold_sum(x), warpfold_mean(x), warpfold_state(x) FROM t GROUP BY k"
    made = connection.execute(query).fetchall()
    assert len(made) == len(GROUPS)
    for number, value, mean, state in made:
        column = GROUPS[number]
        assert same(value, true_sum(column) if present(column) else None), column
        assert same(mean, true_mean(column)), column
        assert state == ExactState.of(np.array(present(column), np.float64)).to_bytes(), column


def test_groups_have_the_variances_norms_and_dot_products_of_rationals(connection: psycopg.Connection[Any]) -> None:
    query = (
        "SELECT k, warpfold_squares(x), warpfold_products(x, y), warpfold_var_pop(x), warpfold_var_samp(x),"
        " warpfold_stddev_pop(x), warpfold_stddev_samp(x), warpfold_norm1(x), warpfold_norm2(x),"
        " warpfold_sum_squares(x), warpfold_dot(x, y) FROM t GROUP BY k"
    )
    for number, squares, products, *values in connection.execute(query).fetchall():
        column, other = PAIRS[number]
        for value, wanted in zip(values, true_moments(column, other), strict=True):
            assert same(value, wanted), (column, other)
        assert squares == ExactState.of(np.array(present(column), np.float64), Terms.PRODUCTS).to_bytes()
        both = [pair for pair in zip(column, other, strict=True) if None not in pair]
        left, right = (np.array([pair[side] for pair in both], np.float64) for side in (0, 1))
        assert products == ExactState.of_products(left, right).to_bytes()


def test_states_of_squares_merge_and_have_variances(connection: psycopg.Connection[Any]) -> None:
    connection.execute(
        "CREATE TEMP TABLE parts AS SELECT k, warpfold_state(x) AS s, warpfold_squares(x) AS q FROM t GROUP BY k, x > 0"
    )
    query = (
        "SELECT k, warpfold_state_var_pop(s, q), warpfold_state_var_samp(s, q), warpfold_state_stddev_pop(s, q),"
        " warpfold_state_stddev_samp(s, q), warpfold_state_norm2(q), warpfold_state_sum(q), warpfold_state_count(q)"
        " FROM (SELECT k, warpfold_merge(s) AS s, warpfold_merge(q) AS q FROM parts GROUP BY k) m"
    )
    for number, *values, count in connection.execute(query).fetchall():
        column, other = PAIRS[number]
        *spreads, _, norm2, squares, _ = true_moments(column, other)
        for value, wanted in zip(values, [*spreads, norm2 or 0.0, squares or 0.0], strict=True):
            assert same(value, wanted), column
        assert count == len(present(column))
    state_of, squares_of = (f"(SELECT warpfold_{name}(1.5::double precision))" for name in ("state", "squares"))
    with pytest.raises(psycopg.errors.InvalidParameterValue, match="different things"):
        connection.execute(f"SELECT warpfold_merge(s) FROM (VALUES ({state_of}), ({squares_of})) m (s)")  # noqa: S608
    with pytest.raises(psycopg.errors.InvalidParameterValue, match="same elements"):
        connection.execute(f"SELECT warpfold_state_var_pop({state_of}, {state_of})")


def test_states_that_others_wrote_merge(connection: psycopg.Connection[Any]) -> None:
    states = [[ExactState.of(np.array(present(column), np.float64)).to_bytes()] for column in GROUPS]
    connection.execute("CREATE TEMP TABLE states (s bytea)")
    with connection.cursor() as cursor:
        cursor.executemany("INSERT INTO states VALUES (%s)", [*states, [None]])
    whole = ExactState.of(np.array(present(ELEMENTS), np.float64)).to_bytes()
    assert connection.execute("SELECT warpfold_merge(s) FROM states").fetchone() == (whole,)
    values = "SELECT warpfold_state_sum(s), warpfold_state_mean(s) FROM states WHERE s IS NOT NULL"
    for column, (value, mean) in zip(GROUPS, connection.execute(values).fetchall(), strict=True):
        assert same(value, true_sum(column)), column
        assert same(mean, true_mean(column)), column


def test_workers_of_postgres_combine_what_they_added(connection: psycopg.Connection[Any]) -> None:
    with connection.transaction():
        for setting in ("parallel_setup_cost", "parallel_tuple_cost", "min_parallel_table_scan_size"):
            connection.execute(f"SET LOCAL {setting} = 0")
        connection.execute("SET LOCAL debug_parallel_query = on")
        (plan,) = zip(*connection.execute("EXPLAIN SELECT warpfold_sum(x) FROM t").fetchall(), strict=True)
        assert any("Partial Aggregate" in line for line in plan)
        row = connection.execute("SELECT warpfold_sum(x) FROM t WHERE abs(x) < 1e300").fetchone()
    kept = [x if x is not None and abs(x) < 1e300 else None for x in ELEMENTS]
    assert row is not None
    assert same(row[0], true_sum(kept))


def test_integers_are_not_rounded_before_they_are_added(connection: psycopg.Connection[Any]) -> None:
    rows = "(VALUES (9007199254740993::bigint), (-9007199254740992)) v (i)"
    assert connection.execute(f"SELECT warpfold_sum(i), warpfold_mean(i) FROM {rows}").fetchone() == (1.0, 0.5)  # noqa: S608
    assert connection.execute(
        "SELECT warpfold_sum(i), warpfold_sum(i::real) FROM generate_series(1, 9) i"
    ).fetchone() == (
        45.0,
        45.0,
    )


def test_bytes_that_are_no_state_are_refused(connection: psycopg.Connection[Any]) -> None:
    state = bytearray(ExactState.of(np.array([0.1, 2.0])).to_bytes())

    def changed(at: int, value: int) -> bytes:
        return bytes([*state[:at], value, *state[at + 1 :]])

    for damaged, message in (
        (b"no state", "magic"),
        (changed(4, 2), "version 2 is not known"),
        (changed(5, 2), "terms"),
        (bytes(state[:-1]), "length"),
        (changed(8, 0), "count"),
        (changed(6, 24), "flags"),
        (changed(7, 1), "canonical"),
        (changed(18, 200), "length"),
    ):
        with pytest.raises(psycopg.errors.InvalidParameterValue, match=message):
            connection.execute("SELECT warpfold_merge(%s::bytea)", [damaged])


def test_the_script_may_run_again(connection: psycopg.Connection[Any]) -> None:
    connection.execute(postgres.script().encode())
    assert connection.execute("SELECT warpfold_sum(1.5::double precision)").fetchone() == (1.5,)


def test_the_module_prints_the_script() -> None:
    printed = subprocess.run(
        [sys.executable, "-m", "warpfold.engines.postgres"], check=True, capture_output=True, text=True
    )
    assert printed.stdout == postgres.script()
