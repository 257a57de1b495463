"""Every source of Arrow batches is reduced by key, batch by batch, to one and the same table."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import datafusion
import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pytest

from tests.support.hard_sums import COLUMNS, by_rows, same, true_mean, true_sum
from warpfold.engines import arrow
from warpfold.kernels.errors import InvalidInput

GROUPS = [column for column in COLUMNS.values() if column]
KEYS, ELEMENTS = by_rows(GROUPS)
TABLE = pa.table({"k": KEYS, "x": pa.array(ELEMENTS, pa.float64()), "word": ["a"] * len(KEYS)})
VALUES = {"total": ("sum", "x"), "usual": ("mean", "x")}


def handed_out(how: str) -> Any:
    match how:
        case "duckdb":
            return duckdb.connect().from_arrow(TABLE)
        case "datafusion":
            return datafusion.SessionContext().from_arrow(TABLE)
        case "polars":
            return pl.from_arrow(TABLE)
        case "lazy":
            return pl.DataFrame(TABLE).lazy().with_columns(pl.col("x") * 1.0)
        case "dataset":
            return ds.dataset(TABLE)
        case _:
            return TABLE.to_reader(50)


@pytest.mark.parametrize("how", ["duckdb", "datafusion", "polars", "lazy", "dataset", "reader"])
def test_every_engine_gives_the_values_of_rationals(how: str) -> None:
    made = arrow.group_by(handed_out(how), "k", VALUES).to_pylist()
    for row in made:
        column = GROUPS[row["k"]]
        assert same(row["total"], true_sum(column))
        assert same(row["usual"], true_mean(column))
    assert len(made) == len(GROUPS)


def test_rows_of_duckdb_are_whole_whatever_else_their_connection_does() -> None:
    connection = duckdb.connect()
    connection.execute("SET threads = 2")
    relation = connection.sql("SELECT i % 2 AS k, 1 AS x FROM range(3_000_000) t(i)")
    _, batches = arrow._opened(relation, ["k", "x"])
    rows = next(batches).num_rows
    assert connection.execute("SELECT 5").fetchone() == (5,)  # DuckDB would end a stream of its own here
    assert rows + sum(batch.num_rows for batch in batches) == 3_000_000


def test_threads_of_one_connection_of_duckdb_get_their_own_rows() -> None:
    connection = duckdb.connect()
    query = "SELECT {} AS k, i AS x FROM range({}) t(i)"
    relations = [connection.sql(query.format(n, 1000 + n)) for n in range(4)]

    def rows(n: int) -> list[dict[str, Any]]:
        listed: list[dict[str, Any]] = arrow.group_by(relations[n], "k", {"n": ("sum", "x")}).to_pylist()
        return listed

    with ThreadPoolExecutor(4) as threads:
        for n, made in zip([0, 1, 2, 3] * 15, threads.map(rows, [0, 1, 2, 3] * 15), strict=True):
            assert made == [{"k": n, "n": (1000 + n) * (999 + n) // 2}]


def test_states_come_as_a_table_of_states() -> None:
    made = arrow.group_by(TABLE, ["k", "word"], {"total": ("sum", "x")}, states=True)
    assert made.column_names == ["k", "word", "total", "rows", "total_state"]
    assert b"warpfold.states" in made.schema.metadata


def test_what_cannot_be_taken_is_refused_by_name() -> None:
    for values, message in (
        ({"a": ("sum", "absent")}, "no column 'absent'"),
        ({"a": ("sum", "word")}, "'word' as string"),
        ({"a": ("middle", "x")}, "unknown op 'middle'"),
        ({"a": ("prod", "x")}, "prod of floats rounds"),
    ):
        with pytest.raises(InvalidInput, match=message):
            arrow.group_by(TABLE, "k", values)
    with pytest.raises(InvalidInput, match="max_groups"):
        arrow.group_by(TABLE, "k", VALUES, max_groups=2)
    with pytest.raises(TypeError, match="no batches of Arrow"):
        arrow.group_by([1.0], "k", VALUES)
