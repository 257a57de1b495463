"""Sources without elements have the value of no elements, wherever they come from."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest

from tests.support.leases import lease_on
from warpfold.contract.folders import Folders
from warpfold.contract.kinds.reduce import ReduceResult
from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.ops import OPS
from warpfold.worker.execute import Kernels


@pytest.fixture
def kernels(data_root: Path) -> Kernels:
    return Kernels("cpu", "here:cpu", Folders((data_root,), data_root))


def run(kernels: Kernels, **spec: Any) -> ReduceResult:
    """The result of a reduction."""
    lease = lease_on(json.dumps({"kind": "reduce", **spec}), attempt=1, queued_ms=1.0)
    return ReduceResult.model_validate(kernels.run(lease, lambda news: None).result)


NOTHING: Mapping[str, dict[str, Any]] = {
    "values": {"type": "values", "values": [], "dtype": "float64"},
    "NaNs left out": {"type": "values", "values": ["nan", "nan"], "dtype": "float64", "nan_policy": "omit"},
    "a file of no elements": {"type": "path", "path": "none.npy"},
    "a column of no rows": {"type": "table", "path": "empty.parquet", "column": "x"},
    "a column of nulls": {"type": "table", "path": "nulls.parquet", "column": "x"},
    "a filter that keeps nothing": {
        "type": "table", "path": "rows.parquet", "column": "x", "filter": {"column": "k", "op": ">", "value": 9},
    },
    "a text of nulls": {"type": "table", "path": "none.csv", "column": "x", "dtype": "float64"},
    "a generator of nothing": {"type": "generate", "distribution": "normal", "n": 0, "dtype": "float64"},
}  # fmt: skip


@pytest.fixture
def with_files_of_nothing(data_root: Path) -> None:
    np.save(data_root / "none.npy", np.empty(0))
    kinds = [("k", pyarrow.int64()), ("x", pyarrow.float64()), ("price", pyarrow.decimal128(9, 2))]
    for name, k, x in (("empty", [], []), ("nulls", [1, 1], [None, None]), ("rows", [1, 2], [1.5, 2.5])):
        prices = pyarrow.array([None] * len(k), kinds[2][1])
        table = pyarrow.table(
            [pyarrow.array(k, kinds[0][1]), pyarrow.array(x, kinds[1][1]), prices], ["k", "x", "price"]
        )
        pyarrow.parquet.write_table(table, data_root / f"{name}.parquet")
    (data_root / "none.csv").write_text("k,x\n1,\n2,\n")
    np.save(data_root / "times.npy", np.empty(0, "timedelta64[s]"))
    np.save(data_root / "complex.npy", np.empty(0, np.complex128))


@pytest.mark.usefixtures("with_files_of_nothing")
@pytest.mark.parametrize("nothing", NOTHING)
def test_nothing_has_the_empty_value_wherever_it_comes_from(kernels: Kernels, nothing: str) -> None:
    source = dict(NOTHING[nothing])
    fields = {"source": source, "nan_policy": source.pop("nan_policy", "propagate")}
    for op in (row for row in OPS.values() if row.sources == 1):
        if op.empty is None:
            with pytest.raises(
                InvalidInput, match=f"{op.name} of no elements is undefined|holds a null .* in its place"
            ):
                run(kernels, op=op.name, **fields)
            continue
        result = run(kernels, op=op.name, **fields)
        assert (result.value, result.count) == (op.empty, 0), op.name


@pytest.mark.usefixtures("with_files_of_nothing")
def test_no_decimals_durations_and_complex_numbers_have_the_empty_value_of_their_kind(kernels: Kernels) -> None:
    def result(op: str, **source: Any) -> ReduceResult:
        return run(kernels, op=op, source=source)

    prices = {"type": "table", "path": "nulls.parquet", "column": "price"}
    for op in ("sum", "norm1", "norm_inf"):
        none = result(op, **prices)
        assert (none.value, none.decimal, none.nulls) == (0.0, "0.00", 2)
    assert result("count_nonzero", **prices).value == 0
    time = result("sum", type="array", path="times.npy").time
    assert time is not None
    assert time.iso == "PT0S"
    assert result("sum", type="array", path="complex.npy").value == 0j
    assert [result(op, type="array", path="complex.npy").value for op in ("sum_squares", "norm2", "any")] == [
        0,
        0,
        False,
    ]
