"""Nulls that propagate, as the child of a CPU slot reduces them: of every format, to one value, to many and by key.
What is null is known from the rows that the test wrote."""

from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.support.table_files import FORMATS
from warpfold.contract.tasks import task_spec
from warpfold.kernels.errors import InvalidInput
from warpfold.worker import grouped

h5py = pytest.importorskip("h5py")
pa: Any = pytest.importorskip("pyarrow")
zarr: Any = pytest.importorskip("zarr")

Run = Callable[..., Any]

ROWS = [1.5, None, 4.0, float("nan"), -2.5, None, 8.0]


@pytest.fixture(scope="module")
def run(ran: Run) -> Run:
    """Runs a job with propagating nulls, and gives its result."""

    def result(source: dict[str, Any], **spec: Any) -> Any:
        return ran({"kind": "reduce", **spec, "source": {"null_policy": "propagate", **source}})

    return result


def table(root: Path, name: str, values: list[Any], kind: Any = None) -> dict[str, Any]:
    made = pa.table({"x": pa.array(values, kind), "k": [row % 2 for row in range(len(values))]})
    FORMATS[name](root / name, made, 3)
    return {"type": "table", "path": name, "column": "x"}


@pytest.mark.parametrize("name", FORMATS)
def test_one_null_makes_the_value_null_in_every_format(root: Path, run: Run, name: str) -> None:
    source = table(root, name, ROWS)
    for op in ("sum", "min", "argmax", "count_nonzero", "var"):
        result = run(source, op=op)
        assert (result.value, result.hex, result.nulls, result.count) == (None, None, 2, 5), op
        assert result.state is None
    kept = run({**source, "filter": {"op": "not", "of": {"op": "is_null", "column": "x"}}}, op="max", nan_policy="omit")
    assert (kept.value, kept.nulls, kept.count) == (8.0, 0, 4)
    assert repr(run({**source, "filter": {"op": ">", "column": "x", "value": 0}}, op="sum").value) == "13.5"


@pytest.mark.parametrize("name", ["x.parquet", "x.arrows", "x.csv"])
def test_a_place_is_that_of_the_row_and_a_nan_is_no_null(root: Path, run: Run, name: str) -> None:
    result = run(table(root, name, [3.5, float("nan"), 1.0]), op="argmin")
    assert (result.value, result.nulls) == (1, 0)
    assert run(table(root, name, [3.0, 9.0, 1.0]), op="argmax").value == 1


@pytest.mark.parametrize("kind", ["int8", "uint64", "bool", "float16", "decimal", "dictionary"])
def test_columns_of_every_kind_propagate(root: Path, run: Run, kind: str) -> None:
    types = {"decimal": pa.decimal128(9, 2), "float16": pa.float16(), "bool": pa.bool_()}
    values: list[Any] = [np.float16(1), None] if kind == "float16" else [True, None] if kind == "bool" else [1, None]
    source = table(root, "x.parquet", values, types.get(kind, pa.int8() if kind == "int8" else pa.uint64()))
    if kind == "dictionary":
        made = pa.table({"x": pa.array([1, None]).dictionary_encode(), "k": [0, 1]})
        FORMATS["x.parquet"](root / "x.parquet", made, 3)
    result = run(source, op="max")
    assert (result.value, result.decimal, result.nulls, result.count) == (None, None, 1, 1)


STANDING = [pa.date32(), pa.timestamp("ns", "UTC"), pa.duration("s")]
STANDING += [pa.decimal32(3, 1), pa.decimal64(18, 2), pa.decimal128(5, -2), pa.decimal256(40, 2)]


@pytest.mark.parametrize("kind", STANDING, ids=str)
def test_a_null_among_integers_that_stand_for_values_changes_no_other(root: Path, run: Run, kind: Any) -> None:
    def value(integer: int) -> float:
        return float(Decimal(integer).scaleb(-kind.scale)) if pa.types.is_decimal(kind) else integer

    if pa.types.is_decimal(kind):
        values = [None if row is None else Decimal(row).scaleb(-kind.scale) for row in (3, None, 5, 7)]
    else:
        values = (
            pa.array([3, None, 5, 7], pa.int32()).cast(pa.int32() if kind == pa.date32() else pa.int64()).cast(kind)
        )
    source = table(root, "x.arrow", values, kind)
    assert (run(source, op="max").value, run(source, op="max").nulls) == (None, 1)
    assert run(source, op="max", segments={"length": 2}).values == (None, value(7))
    del source["column"]
    spec = {
        "kind": "groupby",
        "by": ["k"],
        "aggregations": [{"op": "max", "column": "x"}, {"op": "mean", "column": "x"}],
    }
    for policy, other in (("omit", value(7)), ("propagate", None)):
        result = run({**source, "null_policy": policy}, **spec)
        assert [column.values for column in result.columns] == [(value(5), other), (value(4), other)]


def test_dot_counts_the_pairs_without_a_null(root: Path, run: Run) -> None:
    source = table(root, "x.parquet", [1.0, None, 3.0, None])
    other = {**table(root, "x.arrow", [None, None, 5.0, 7.0]), "null_policy": "propagate"}
    result = run(source, op="dot", other=other)
    assert (result.value, result.nulls, result.count) == (None, 4, 1)


def test_only_the_values_of_nulls_are_null_along_axes_and_by_segments(root: Path, run: Run) -> None:
    array = np.arange(12, dtype=np.int16).reshape(3, 4)
    with h5py.File(root / "x.h5", "w") as file:
        file.create_dataset("x", data=array, chunks=(2, 2)).attrs["_FillValue"] = np.int16(6)
    made = zarr.create_array(root / "x.zarr", shape=(3, 4), chunks=(2, 3), dtype="int16")
    made[:] = array
    made.attrs["_FillValue"] = 6
    for path in ("x.h5", "x.zarr"):
        source = {"type": "array", "path": path}
        rows = run(source, op="sum", axis=1)
        assert (rows.values, rows.counts, rows.count, rows.nulls) == ((6, None, 38), (4, 3, 4), 11, 1)
        assert run(source, op="max", axis=0).values == (8, 9, None, 11)
        assert (run(source, op="sum").value, run({**source, "select": [0]}, op="sum").value) == (None, 6)
    segments = {"offsets": [0, 1, 3, 7]}
    by = run(table(root, "x.csv", ROWS), op="sum", segments=segments)
    assert (by.values, by.counts) == ((1.5, None, None), (1, 1, 3))
    assert run(table(root, "x.csv", ROWS), op="sum", segments=segments, nan_policy="omit").counts == (1, 1, 2)
    empty = run(table(root, "x.csv", ROWS), op="max", segments={"offsets": [0, 1, 1, 2]})
    assert (empty.values, empty.counts) == ((1.5, None, None), (1, 0, 0))


def test_stored_values_tell_which_of_them_are_null(root: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grouped, "MOST_RESULTS", 2)
    result = run(table(root, "x.parquet", ROWS), op="sum", segments={"length": 2})
    assert result.values is None
    assert [part.name for part in result.artefact.parts] == ["values", "counts", "missing"]
    assert repr([row[1] for row in result.artefact.preview]) == "[None, nan, None, 8.0]"


def test_a_group_with_a_null_has_no_value(root: Path, run: Run) -> None:
    source = table(root, "x.parquet", [1.0, None, 3.0, 4.0, 5.0])
    del source["column"]
    spec = {
        "kind": "groupby",
        "by": ["k"],
        "aggregations": [{"op": "sum", "column": "x"}, {"op": "max", "column": "x"}],
    }
    result = run(source, **spec)
    assert [column.values for column in result.columns] == [(9.0, None), (5.0, None)]
    assert [column.name for column in result.columns] == ["sum_x", "max_x"] or len(result.columns) == 2
    assert result.columns[0].counts == (3, 1)


def test_groups_of_arrays_side_by_side_propagate(root: Path, ran: Run) -> None:
    source = {**table(root, "x.csv", ROWS), "null_policy": "propagate"}
    keys = {"type": "values", "values": [0, 1, 0, 0, 2, 2, 2]}
    spec = {"kind": "groupby", "by": [{"name": "k", "source": keys}]}
    spec["aggregations"] = [{"op": "count_nonzero", "name": "n", "source": source}]
    result = ran(spec)
    assert result.columns[0].values == (3, None, None)


def test_many_files_are_one_array_whose_null_propagates(root: Path, run: Run) -> None:
    for name, values in (("1.parquet", [1, 2]), ("2.parquet", [None, 4])):
        FORMATS["x.parquet"](root / name, pa.table({"x": pa.array(values, pa.int32())}), 3)
    source = {"type": "files", "paths": ["1.parquet", "2.parquet"], "column": "x"}
    assert (run(source, op="sum").value, run(source, op="sum").nulls) == (None, 1)
    assert run(source, op="sum", segments={"length": 2}).values == (3, None)


@pytest.mark.parametrize("shape", [{"axis": 0}, {"segments": {"length": 2}}])
def test_states_of_nulls_are_refused_by_the_field_of_the_policy(shape: dict[str, Any]) -> None:
    source = {"type": "table", "path": "x.parquet", "null_policy": "propagate"}
    with pytest.raises(ValueError, match="a null has no exact state"):
        task_spec.validate_python({"kind": "reduce", "op": "sum", "source": source, "states": True, **shape})


def test_a_null_is_refused_still_where_the_policy_says_so(root: Path, run: Run) -> None:
    with pytest.raises(InvalidInput, match="holds a null in 'x', at index 1"):
        run({**table(root, "x.parquet", ROWS), "null_policy": "raise"}, op="sum")
