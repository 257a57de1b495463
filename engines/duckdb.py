r"""Exact aggregates of DuckDB: `warpfold.duckdb.register(connection)` adds them to the database of a connection.

| SQL | value |
|---|---|
| `warpfold_sum(x)`, `warpfold_mean(x)`, `warpfold_norm1(x)` | Σ x, Σ x / n and Σ \|x\| of a group, a DOUBLE |
| `warpfold_sum_squares(x)`, `warpfold_norm2(x)`, `warpfold_dot(x, y)` | Σ x², √ Σ x² and Σ x y |
| `warpfold_var_pop(x)`, `…_var_samp`, `…_stddev_pop`, `…_stddev_samp` | variances of the exact mean, and their roots |
| `warpfold_state(x)`, `warpfold_squares(x)`, `warpfold_products(x, y)` | the bytes of the states of these sums |
| `warpfold_merge(state)` | the bytes of the merged states of a group |
| `warpfold_state_sum(state)`, `…_mean`, `…_norm2`, `…_count` | the value of a state, and its number of terms |
| `warpfold_state_var_pop(state, squares)`, … | the variances of the states of the same elements |

`register` needs a connection that allows unsigned extensions, which `connect` makes. `register_macros` serves any
other: the same names, but DuckDB gathers each group in a list.

Elements are DOUBLE, BIGINT, UBIGINT or of a narrower type. Columns of DECIMAL, HUGEINT, UHUGEINT and BIGNUM are
refused, because DuckDB would round their elements to DOUBLE.
"""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import duckdb
import pyarrow

from warpfold.engines import sql
from warpfold.engines.duckdb_aggregates import loader
from warpfold.engines.duckdb_extension import extension
from warpfold.kernels.errors import Unavailable

_NAME = "warpfold"


def connect(database: str | Path = ":memory:", **options: Any) -> "duckdb.DuckDBPyConnection":
    """A connection as `duckdb.connect` makes it, which allows unsigned extensions, with the functions registered.

    Anybody who runs SQL on the connection may load any extension that lies in a file of this machine.
    """
    config = {**options.pop("config", {}), "allow_unsigned_extensions": "true"}
    return register(duckdb.connect(str(database), config=config, **options))


def register(connection: "duckdb.DuckDBPyConnection") -> "duckdb.DuckDBPyConnection":
    """Add the aggregates to the database of `connection`, for all its connections, and the functions of states to
    `connection`, which is returned.

    Raises Unavailable where the connection does not allow unsigned extensions, or on another system than Linux on
    x86-64 and ARM64: `register_macros` works there.
    """
    row = connection.execute("SELECT platform FROM pragma_platform()").fetchone()
    assert row is not None, "it always has a row"
    with TemporaryDirectory(prefix="warpfold-") as folder:
        path = Path(folder) / f"{_NAME}.duckdb_extension"
        path.write_bytes(extension(_NAME, loader(), str(row[0])))
        try:
            connection.execute(f"LOAD '{path}'")
        except duckdb.IOException as error:
            if "allow_unsigned_extensions" not in str(error):
                raise
            raise Unavailable(
                "the connection does not allow unsigned extensions: make it by warpfold.duckdb.connect, or by "
                "duckdb.connect(config={'allow_unsigned_extensions': 'true'}), or use register_macros"
            ) from None
    _prepare(connection)
    return _with_values(connection)


def _prepare(connection: "duckdb.DuckDBPyConnection") -> None:
    """Compile or load every function that a first query calls. On a new machine that takes seconds, during which DuckDB
    would print a progress bar among a program's output."""
    with connection.cursor() as own:
        own.execute("SET enable_progress_bar = false")
        merged = own.execute(
            "SELECT warpfold_merge(s), warpfold_sum(x), warpfold_mean(x) FROM ("
            "SELECT x, warpfold_state(x) AS s FROM (VALUES (1.0::DOUBLE), (2.5)) values(x) GROUP BY x)"
        ).fetchall()
    sql.STATE_FUNCTIONS["sum"].array(pyarrow.array([merged[0][0]], pyarrow.binary()))


def register_macros(connection: "duckdb.DuckDBPyConnection") -> "duckdb.DuckDBPyConnection":
    """Add macros of the same names to `connection`, which is returned: a macro gathers each group in a list, and a
    function in Python adds up all lists of a vector. A column is in memory as a whole then."""
    for name, asked in sql.AGGREGATES.items():
        _add_macro(connection, name, partial(sql.of_lists, name), states=asked.states)
    for name, states in sql.PAIRS.items():
        _add_macro(connection, name, partial(sql.of_pairs_of_lists, name), 2, states=states)
    _add_macro(connection, "merge", partial(sql.of_lists, "merge"), states=True)
    return _with_values(connection)


def _add_macro(connection: Any, name: str, make: Callable[..., Any], columns: int = 1, *, states: bool) -> None:
    _add(connection, f"warpfold_list_{name}", make, [None] * columns, "BLOB" if states else "DOUBLE")
    names = ("x", "y")[:columns]
    lists = ", ".join(f"list({each})" for each in names)
    connection.execute(
        f"CREATE OR REPLACE TEMP MACRO warpfold_{name}({', '.join(names)}) AS warpfold_list_{name}({lists})"
    )


def _with_values(connection: "duckdb.DuckDBPyConnection") -> "duckdb.DuckDBPyConnection":
    for name, function in sql.STATE_FUNCTIONS.items():
        gives = "BIGINT" if function.whole else "DOUBLE"
        _add(connection, f"warpfold_state_{name}", function.array, ["BLOB"] * function.columns, gives)
    return connection


def _add(connection: Any, name: str, make: Callable[..., Any], takes: list[str | None], gives: str) -> None:
    """Add a function of columns of these types, which are None for columns of any type."""

    def whole(column: Any) -> Any:
        return column.combine_chunks() if isinstance(column, pyarrow.ChunkedArray) else column

    # DuckDB counts the parameters, and takes any type for one without an annotation.
    def unary(column):  # type: ignore[no-untyped-def]
        return make(whole(column))

    def binary(column, other):  # type: ignore[no-untyped-def]
        return make(whole(column), whole(other))

    if not connection.execute("SELECT 1 FROM duckdb_functions() WHERE function_name = ?", [name]).fetchone():
        types = None if None in takes else takes
        function = unary if len(takes) == 1 else binary
        connection.create_function(name, function, types, gives, type="arrow", null_handling="special")
