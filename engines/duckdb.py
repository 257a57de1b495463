"""Exact aggregates of DuckDB: `warpfold.duckdb.register(connection)` adds them to the database of a connection.

| SQL | value |
|---|---|
| `warpfold_sum(x)`, `warpfold_mean(x)` | the correctly rounded sum and mean of a group, a DOUBLE |
| `warpfold_state(x)` | the bytes of the exact state of a group |
| `warpfold_merge(state)` | the bytes of the merged states of a group |
| `warpfold_state_sum(state)`, `warpfold_state_mean(state)` | the value of a state |

`register` needs a connection that allows unsigned extensions, which `connect` makes. `register_macros` serves any
other: the same names, but DuckDB gathers each group in a list, and elements are DOUBLE.

Elements are DOUBLE, BIGINT or UBIGINT. DuckDB converts others first: narrower ones without loss, DECIMAL and HUGEINT to
the nearest DOUBLE.
"""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import duckdb
import numpy as np
import pyarrow

from warpfold.engines import numbered
from warpfold.engines.duckdb_aggregates import loader
from warpfold.engines.duckdb_extension import extension
from warpfold.kernels.errors import Unavailable

_NAME = "warpfold"


def connect(database: str | Path = ":memory:", **options: Any) -> "duckdb.DuckDBPyConnection":
    """A connection as `duckdb.connect` makes it, which allows unsigned extensions, with the functions registered.

    Whoever runs SQL on it may load any extension that lies in a file of this machine.
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
    """Have everything compiled, or loaded, that a first query calls: on a new machine that takes seconds, for which
    DuckDB would print a bar of progress among a program's output."""
    with connection.cursor() as own:
        own.execute("SET enable_progress_bar = false")
        merged = own.execute(
            "SELECT warpfold_merge(s), warpfold_sum(x), warpfold_mean(x) FROM ("
            "SELECT x, warpfold_state(x) AS s FROM (VALUES (1.0::DOUBLE), (2.5)) values(x) GROUP BY x)"
        ).fetchall()
    _of_states(pyarrow.array([merged[0][0]], pyarrow.binary()), mean=False)


def register_macros(connection: "duckdb.DuckDBPyConnection") -> "duckdb.DuckDBPyConnection":
    """Add macros of the same names to `connection`, which is returned: a macro gathers each group in a list, and a
    function in Python adds up all lists of a vector. A column is in memory as a whole then."""
    for name, result in (("sum", "DOUBLE"), ("mean", "DOUBLE"), ("state", "BLOB"), ("merge", "BLOB")):
        element = "BLOB" if name == "merge" else "DOUBLE"
        _add(connection, f"warpfold_list_{name}", partial(_of_lists, name), f"{element}[]", result)
        macro = f"CREATE OR REPLACE TEMP MACRO warpfold_{name}(x) AS warpfold_list_{name}(list(x::{element}))"
        connection.execute(macro)
    return _with_values(connection)


def _with_values(connection: "duckdb.DuckDBPyConnection") -> "duckdb.DuckDBPyConnection":
    for name in ("sum", "mean"):
        _add(connection, f"warpfold_state_{name}", partial(_of_states, mean=name == "mean"), "BLOB", "DOUBLE")
    return connection


def _add(connection: Any, name: str, make: Callable[[Any], Any], takes: str, gives: str) -> None:
    def function(column: Any) -> Any:  # DuckDB counts the parameters
        return make(column.combine_chunks() if isinstance(column, pyarrow.ChunkedArray) else column)

    if not connection.execute("SELECT 1 FROM duckdb_functions() WHERE function_name = ?", [name]).fetchone():
        connection.create_function(name, function, [takes], gives, type="arrow", null_handling="special")


def _of_lists(name: str, lists: Any) -> Any:
    offsets = lists.offsets.to_numpy().astype(np.int64)
    if name == "merge":
        start, stop = int(offsets[0]), int(offsets[-1])
        numbers = np.repeat(np.arange(len(lists)), np.diff(offsets))
        return numbered.merge_groups(lists.values.slice(start, stop - start), numbers, len(lists)).array()
    cells = numbered.cells_of(lists.values)
    made = numbered.reduce_lists(cells, offsets, "sum" if name == "state" else name, states=name == "state")
    if name == "state":
        return made.states[0].array()
    return pyarrow.array(made.values, pyarrow.float64(), mask=made.counts == 0)


def _of_states(states: Any, *, mean: bool) -> Any:
    values, missing = numbered.values_of_states(states, mean=mean)
    return pyarrow.array(values, pyarrow.float64(), mask=missing)
