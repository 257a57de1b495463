"""What every op gives of no elements: one table, whatever way the elements come."""

import re
from collections.abc import Callable, Mapping
from functools import cache
from math import isnan
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pytest

from warpfold.client import local
from warpfold.engines import numbered, sql
from warpfold.kernels.aggregates.by_name import combines
from warpfold.kernels.catalog import grouped_backends
from warpfold.kernels.cpu.backend import CpuBackend
from warpfold.kernels.cpu.strategies.rows import NUMPY_ROW
from warpfold.kernels.dtypes import DTYPES, DType
from warpfold.kernels.errors import NoElements
from warpfold.kernels.formats.frames import Wanted, frame_of, keyed_frame
from warpfold.kernels.ops import OPS, NanPolicy, Op, Terms, Value, reference
from warpfold.kernels.ops.operands import operands
from warpfold.kernels.parts.grouping import AlongAxes, Segments
from warpfold.kernels.parts.keyed import Aggregation, GroupPlan
from warpfold.kernels.parts.merged import Merged
from warpfold.kernels.parts.merging import MergePlan, StatesTable, merge_tables
from warpfold.kernels.parts.partitions import merged_value, reduce_partition
from warpfold.kernels.source import ArraySource
from warpfold.kernels.sources.sequential import SequentialSource

EMPTY: Mapping[str, Value | None] = {
    "sum": 0, "mean": None, "prod": 1, "min": None, "max": None, "argmin": None, "argmax": None, "sum_squares": 0,
    "norm1": 0, "norm2": 0, "dot": 0, "var": None, "std": None, "norm_inf": 0, "count_nonzero": 0, "any": False,
    "all": True, "median": None, "quantile": None, "nunique": 0, "count": 0, "histogram": 0, "mode": None, "ptp": None,
    "first": None, "last": None, "nth": None, "top_k": None, "bottom_k": None, "argtop_k": None, "argbottom_k": None,
    "rms": None, "sem": None, "norm3": 0, "norm4": 0,
    "moment3": None, "moment4": None, "skew": None, "kurtosis": None,
    "cov": None, "corr": None, "slope": None, "intercept": None, "r2": None,
}  # fmt: skip

SOME_DTYPES = [DTYPES[name] for name in ("float16", "bfloat16", "float32", "float64", "int64", "uint8", "bool")]

Way = Callable[[Op, DType], Value | None]
"""The value of no elements; None where it is missing or refused because there are no elements."""


def none_of(dtype: DType, *shape: int) -> Any:
    return np.zeros(shape or (0,), dtype.numpy)


@cache
def backend() -> CpuBackend:
    return CpuBackend(8 << 20)


def _whole(op: Op, dtype: DType, source: Any, **asked: Any) -> Value | None:
    try:
        reduced = backend().reduce(source, op.name, other=source if op.sources == 2 else None, **asked)
    except NoElements:
        return None
    assert (reduced.count, reduced.dtype) == (0, op.result_dtype(dtype))
    return reduced.value


def _many(op: Op, dtype: DType, shape: tuple[int, ...], grouping: Any) -> Value | None:
    source = ArraySource(none_of(dtype, *shape))
    other = source if op.sources == 2 else None
    reduced = backend().reduce_groups(source, shape, grouping, op.name, other=other)
    assert set(reduced.counted()) == {0}
    values = set(reduced.listed())
    assert len(values) == 1
    return values.pop()


def _by_key(op: Op, dtype: DType, **plan: Any) -> Any:
    table = pyarrow.table({"k": [1, 1], "x": pyarrow.array([None, None], _arrow(dtype))})
    source = keyed_frame(
        frame_of(table), [Wanted("k", "k", "by.0")], [Wanted("x", "x", "aggregations.0")], refuse_nulls=False
    )
    return backend().group_by(source, GroupPlan((Aggregation(op, 0, "value"),), **plan))


def _arrow(dtype: DType) -> Any:
    return pyarrow.bool_() if dtype.name == "bool" else pyarrow.from_numpy_dtype(dtype.numpy)


def _of_nulls(op: Op, dtype: DType) -> Value | None:
    (column,) = _by_key(op, dtype).columns
    value: Value | None = column.listed()[0]
    return value


def _of_merged_tables(op: Op, dtype: DType) -> Value | None:
    table = _by_key(op, dtype, states=True).table()
    tables = [StatesTable.of(frame_of(table), f"tables.{index}") for index in range(2)]
    (column,) = merge_tables(tables, MergePlan()).columns
    value: Value | None = column.listed()[0]
    return value


def _in_partitions(op: Op, dtype: DType) -> Value | None:
    def opened() -> tuple[Any, Any]:
        source = ArraySource(none_of(dtype))
        return source, source if op.sources == 2 else None

    parts = [
        reduce_partition(backend(), opened, op, number, nan_policy=NanPolicy.PROPAGATE).partial for number in range(2)
    ]
    try:
        merged = Merged([op])
        for part in parts:
            merged.add(part)
        return merged_value(merged, op, 0, [0, 0])[0]
    except NoElements:
        return None


def _without_packages(op: Op, dtype: DType) -> Value | None:
    array, pair = none_of(dtype), op.sources == 2
    taken = operands(op, ArraySource(array), ArraySource(array) if pair else None)
    try:
        return local._portable(op, taken, array, array if pair else None).value
    except NoElements:
        return None


def _by_the_reference(op: Op, dtype: DType) -> Value | None:
    answer = reference.reduce(op, dtype, [], NanPolicy.PROPAGATE)
    return answer.value if isinstance(answer, reference.Answer) else None


def _of_a_column(op: Op, dtype: DType) -> Value | None:
    return numbered.reduce_all(numbered.cells_of(pyarrow.array([None], _arrow(dtype))), op.name)


def _of_groups_of_a_column(op: Op, dtype: DType) -> Value | None:
    cells = numbered.cells_of(pyarrow.array([None], _arrow(dtype)))
    return numbered.reduce_groups(cells, np.zeros(1, np.int64), 2, op.name).listed()[1]


def _in_arrow(op: Op, dtype: DType) -> Value | None:
    arrow = pytest.importorskip("warpfold.engines.arrow")
    table = pyarrow.table({"k": [1], "x": pyarrow.array([None], _arrow(dtype))})
    value: Value | None = arrow.group_by(table, "k", {"value": (op.name, "x")})["value"][0].as_py()
    return value if op.result_dtype(dtype) != "integer" or value is None else int(value)


def _in_pandas(op: Op, dtype: DType) -> Value | None:
    pandas, exact = pytest.importorskip("pandas"), pytest.importorskip("warpfold.engines.pandas")
    values = getattr(exact, op.name)(pandas.DataFrame({"x": none_of(dtype)}))
    whole: Value = values.iloc[0].item()
    return whole


def _in_polars(op: Op, dtype: DType) -> Value | None:
    polars = pytest.importorskip("polars")
    pytest.importorskip("warpfold.engines.polars")
    kind = polars.Series(none_of(dtype)).dtype
    frame = polars.DataFrame({"k": [1, 2], "x": polars.Series([None, None], dtype=kind)})
    of_groups = frame.group_by("k").agg(getattr(polars.col("x").exact, op.name)())["x"].unique().to_list()
    assert of_groups == [getattr(frame["x"].exact, op.name)()]
    value: Value | None = of_groups[0]
    return value


def _in_dask(op: Op, dtype: DType) -> Value | None:
    array, exact = pytest.importorskip("dask.array"), pytest.importorskip("warpfold.engines.dask")
    nothing = array.zeros((3, 0), chunks=(2, 1), dtype=dtype.numpy)
    whole, rows = (getattr(exact, op.name)(nothing, axis=axis).compute() for axis in (None, 1))
    np.testing.assert_array_equal(rows, np.broadcast_to(whole, 3))
    value: Value = whole.item()
    return value


def _in_flox(op: Op, dtype: DType) -> Value | None:
    flox, exact = pytest.importorskip("flox"), pytest.importorskip("warpfold.engines.flox")
    array, labels = np.ones(2, dtype.numpy), np.zeros(2, np.int64)
    value: Value = flox.groupby_reduce(array, labels, func=getattr(exact, op.name), expected_groups=np.array([0, 5]))[
        0
    ][1].item()
    return value


WAYS: Mapping[str, tuple[Way, Callable[[Op, DType], bool]]] = {
    "exact": (
        lambda op, dtype: _whole(op, dtype, ArraySource(none_of(dtype))),
        lambda op, dtype: True,
    ),
    "numpy": (
        lambda op, dtype: _whole(op, dtype, ArraySource(none_of(dtype)), strategy="numpy"),
        lambda op, dtype: dtype.native and (op.name, dtype.name) in NUMPY_ROW.claims,
    ),
    "counted as they are read": (
        lambda op, dtype: _whole(op, dtype, SequentialSource(dtype, lambda: iter(()), None)),
        lambda op, dtype: not (op.name == "prod" and dtype.is_float),
    ),
    "omitted NaNs": (
        lambda op, dtype: _whole(op, dtype, ArraySource(np.full(3, np.nan, dtype.numpy)), nan_policy=NanPolicy.OMIT),
        lambda op, dtype: dtype.name == "float64",
    ),
    "axis": (
        lambda op, dtype: _many(op, dtype, (2, 0), AlongAxes((1,))),
        lambda op, dtype: "cpu" in grouped_backends(op, dtype),
    ),
    "columns": (
        lambda op, dtype: _many(op, dtype, (0, 3), AlongAxes((0,), keepdims=True)),
        lambda op, dtype: "cpu" in grouped_backends(op, dtype),
    ),
    "segments": (
        lambda op, dtype: _many(op, dtype, (0,), Segments((0, 0, 0))),
        lambda op, dtype: "cpu" in grouped_backends(op, dtype),
    ),
    "a group of nulls": (
        _of_nulls,
        lambda op, dtype: dtype.native and op.sources == 1 and not (op.name == "prod" and dtype.is_float),
    ),
    "tables of states": (
        _of_merged_tables,
        lambda op, dtype: dtype.native and op.adds and op.sources == 1,
    ),
    "partitions": (
        _in_partitions,
        lambda op, dtype: combines(op),
    ),
    "without packages": (
        _without_packages,
        lambda op, dtype: op.adds and not op.ddof and op.terms is not Terms.TOTALS,
    ),
    "the reference": (
        _by_the_reference,
        lambda op, dtype: op.sources == 1,
    ),
    "a column": (
        _of_a_column,
        lambda op, dtype: dtype.native and op.name in numbered.OPS,
    ),
    "groups of a column": (
        _of_groups_of_a_column,
        lambda op, dtype: dtype.native and op.name in numbered.OPS,
    ),
    "arrow": (
        _in_arrow,
        lambda op, dtype: dtype.native and op.sources == 1 and not (op.name == "prod" and dtype.is_float),
    ),
    "pandas": (
        _in_pandas,
        lambda op, dtype: dtype.native and op.name in numbered.OPS,
    ),
    "polars": (
        _in_polars,
        lambda op, dtype: dtype.name in ("float32", "float64", "int64") and op.name in numbered.OPS,
    ),
    "dask": (
        _in_dask,
        lambda op, dtype: dtype.native and op.name in numbered.OPS,
    ),
    "flox": (
        _in_flox,
        lambda op, dtype: dtype.native and op.name in numbered.OPS,
    ),
}
"""Each way that elements come, and which ops of which dtypes it has."""


@pytest.mark.parametrize("route", WAYS)
@pytest.mark.parametrize("op", OPS.values(), ids=OPS)
def test_no_elements_have_the_value_of_the_table(op: Op, route: str) -> None:
    value_of, has = WAYS[route]
    for dtype in (dtype for dtype in SOME_DTYPES if has(op, dtype)):
        value, wanted = value_of(op, dtype), EMPTY[op.name]
        if wanted is None:
            assert value is None or (isinstance(value, float) and isnan(value)), dtype.name
            continue
        result = op.result_dtype(dtype)
        kind = bool if result == "bool" else float if result in DTYPES and DTYPES[result].is_float else int
        assert (value, type(value)) == (kind(wanted), kind), dtype.name
        assert str(value) != "-0.0", dtype.name


@pytest.mark.parametrize("name", [name for name, asked in sql.AGGREGATES.items() if not asked.states])
def test_sql_has_null_of_no_elements(name: str) -> None:
    lists = pyarrow.array([[], [None], [1.0, 2.0]], pyarrow.list_(pyarrow.float64()))
    assert sql.of_lists(name, lists).is_null().to_pylist() == [True, True, False]


def test_the_documents_have_the_table() -> None:
    page = (Path(__file__).parents[2] / "docs" / "arrays.md").read_text()
    rows = re.findall(r"^\| (`\w+`(?:, `\w+`)*) \| (0|1|false|true|none) \|", page, re.MULTILINE)
    written = {op: value for ops, value in rows for op in re.findall(r"\w+", ops)}
    texts = {name: "none" if row.empty is None else str(row.empty).lower() for name, row in OPS.items()}
    assert written == texts
