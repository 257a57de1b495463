"""Filters of rows: every value is typed exactly as its column, or refused."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from warpfold.contract.folders import Folders
from warpfold.contract.keyed import open_rows, plan_of
from warpfold.contract.kinds.groupby import GroupbySpec
from warpfold.contract.sources.table import TableSource
from warpfold.kernels.cpu.backend import CpuBackend
from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.sources.sequential import gathered


def kept_rows(root: Path, **options: Any) -> list[Any]:
    """Column x of x.parquet, in the rows that a filter keeps."""
    asked = TableSource.model_validate({"type": "table", "path": "x.parquet", "column": "x", **options})
    source = gathered(TableSource.model_validate_json(asked.model_dump_json()).open(Folders((root,), root)))
    values: list[Any] = source.read(0, source.count).tolist()
    return values


def refused(root: Path, condition: Any) -> str:
    with pytest.raises(InvalidInput) as caught:
        kept_rows(root, filter=condition)
    assert caught.value.field == "source.filter"
    return str(caught.value)


@pytest.mark.parametrize(
    ("kind", "value", "fits"),
    [
        (pa.int8(), 127, True),
        (pa.int8(), 128, False),
        (pa.int64(), 2**63, False),
        (pa.int64(), 1.0, False),
        (pa.int64(), True, False),
        (pa.uint64(), -1, False),
        (pa.uint64(), 2**64 - 1, True),
        (pa.float64(), 2**53 + 1, False),
        (pa.float64(), 2**53, True),
        (pa.float32(), 0.1, True),
        (pa.float32(), 2**24 + 1, True),  # compared as float64, which holds it
        (pa.float16(), 1e30, True),
        (pa.bool_(), 1, False),
        (pa.bool_(), True, True),
        (pa.string(), "a", True),
        (pa.string(), 1, False),
        (pa.decimal128(5, 2), "1.25", True),
        (pa.decimal128(5, 2), "1.255", False),
        (pa.decimal128(5, 2), 1.25, False),
        (pa.date32(), "2026-01-31", True),
        (pa.date32(), "2026-02-31", False),
        (pa.timestamp("ms"), "2026-01-31T12:00:00", True),
        (pa.timestamp("us"), "soon", False),
        (pa.binary(), "a", False),
    ],
)
def test_a_filters_value_is_typed_exactly_or_refused(data_root: Path, kind: Any, value: Any, fits: bool) -> None:
    pq.write_table(pa.table({"x": [1, 2], "k": pa.array([None, None], kind)}), data_root / "x.parquet")
    for condition in ({"op": "!=", "column": "k", "value": value}, {"op": "in", "column": "k", "values": [value]}):
        if fits:
            assert kept_rows(data_root, filter=condition) == []
        else:
            assert f"holds column 'k' as {kind}, which does not hold" in refused(data_root, condition)


def test_a_filter_compares_exactly(data_root: Path) -> None:
    table = pa.table(
        {
            "x": [1, 2, 3, 4],
            "big": pa.array([2**53, 2**53 + 1, 2**63 - 1, None], pa.int64()),
            "narrow": pa.array([0.1, 0.5, np.nan, None], pa.float32()),
            "word": pa.array(["a", "b", "a", None]).dictionary_encode(),
            "day": pa.array(["2026-01-01", "2026-01-02", None, "2026-01-04"]).cast(pa.date32()),
        }
    )
    pq.write_table(table, data_root / "x.parquet", row_group_size=2)

    def kept(**condition: Any) -> list[int]:
        return kept_rows(data_root, filter=condition)

    assert kept(op="==", column="big", value=2**53 + 1) == [2]
    assert kept(op=">", column="big", value=2**53) == [2, 3]
    assert kept(op="==", column="narrow", value=0.1) == []  # 0.1 is no float32
    assert kept(op=">", column="narrow", value=0.1) == [1, 2]  # and the nearest float32 is greater
    assert kept(op="==", column="word", value="a") == [1, 3]
    assert kept(op=">=", column="day", value="2026-01-02") == [2, 4]
    assert kept(op="not", of={"op": "==", "column": "word", "value": "a"}) == [2]
    both = [{"op": "==", "column": "word", "value": "a"}, {"op": "is_null", "column": "day"}]
    assert kept(op="and", of=both) == [3]


@pytest.mark.parametrize("kind", [pa.float16(), pa.float32(), pa.float64(), pa.int8(), pa.decimal128(5, 1)], ids=str)
def test_the_members_are_what_equals_one_of_the_values(data_root: Path, kind: Any) -> None:
    numbers = [np.float16(number) for number in (0.0, -0.0, 1.0, np.nan, np.inf, 2.0)]
    column = numbers if pa.types.is_floating(kind) else [0, 0, 1, None, None, 2]
    pq.write_table(pa.table({"x": range(6), "k": pa.array([*column], kind)}), data_root / "x.parquet", row_group_size=2)
    for values, kept in (([0], [0, 1]), ([1, 0], [0, 1, 2]), ([2, 7], [5]), ([1], [2])):
        equal = [{"op": "==", "column": "k", "value": value} for value in values]
        assert kept_rows(data_root, filter={"op": "or", "of": equal}) == kept
        assert kept_rows(data_root, filter={"op": "in", "column": "k", "values": values}) == kept
    if pa.types.is_floating(kind):
        assert kept_rows(data_root, filter={"op": "in", "column": "k", "values": [-0.0, 1.0]}) == [0, 1, 2]


@pytest.mark.parametrize("rows", [1, 2, 4])
def test_a_nan_is_kept_by_the_opposite_of_a_comparison_whatever_the_statistics_say(data_root: Path, rows: int) -> None:
    table = pa.table({"x": [1, 2, 3, 4], "k": [1.5, np.nan, 1.5, None]})
    pq.write_table(table, data_root / "x.parquet", row_group_size=rows)
    same, more = ({"op": op, "column": "k", "value": value} for op, value in (("==", 1.5), (">", 0.0)))
    opposites = [{"op": "!=", "column": "k", "value": 1.5}, {"op": "not", "of": same}, {"op": "not", "of": more}]
    for condition in (*opposites, {"op": "or", "of": [opposites[0], {"op": "==", "column": "x", "value": 9}]}):
        assert kept_rows(data_root, filter=condition) == [2]
        spec = {"kind": "groupby", "by": ["x"], "aggregations": [{"op": "sum", "column": "k"}]}
        source = {"type": "table", "path": "x.parquet", "filter": condition}
        asked = GroupbySpec.model_validate({**spec, "source": source})
        groups = CpuBackend(8 << 20).group_by(open_rows(asked, Folders((data_root,), data_root)), plan_of(asked))
        assert groups.keys[0].to_pylist() == [2]
