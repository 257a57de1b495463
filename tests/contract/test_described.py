"""A description has the ops that a column takes, and a row for each column."""

import pyarrow as pa
import pytest

from warpfold.contract.described import described, describing
from warpfold.contract.group_tables import GroupValues
from warpfold.contract.kinds.groupby import MOST_AGGREGATIONS, GroupbySpec
from warpfold.kernels.errors import InvalidInput

KINDS = {"x": pa.float32(), "when": pa.timestamp("s"), "word": pa.string(), "price": pa.decimal128(9, 2)}


def test_a_column_is_described_by_the_ops_that_it_takes() -> None:
    ops: dict[str, list[str]] = {}
    for asked in describing(KINDS, q=[0.5]):
        ops.setdefault(asked["column"], []).append(asked["op"])
    assert ops == {
        "x": ["count_nonzero", "mean", "std", "skew", "kurtosis", "min", "quantile", "max"],
        "when": ["mean", "min", "quantile", "max"],
        "price": ["count_nonzero", "mean", "min", "quantile", "max"],
    }
    spec = {"kind": "groupby", "source": {"type": "table", "path": "t.parquet"}, "nan_policy": "omit"}
    asked_for = GroupbySpec.model_validate({**spec, "aggregations": describing(KINDS)})
    assert (asked_for.needs(), asked_for.by) == ("cpu", ())
    assert asked_for.description().startswith("count_nonzero of x, mean of x")
    assert len(describing({f"x{number}": pa.int8() for number in range(64)})) <= MOST_AGGREGATIONS


def test_a_column_of_words_is_refused_by_name_and_left_out_otherwise() -> None:
    for kinds, columns in ((KINDS, ["word"]), ({"word": pa.string()}, None)):
        with pytest.raises(InvalidInput) as refused:
            describing(kinds, columns)
        assert refused.value.field == "column"


def values(name: str, op: str, value: object, **fields: object) -> GroupValues:
    made = {"name": f"{name}_{op}", "op": op, "column": name, "dtype": "float64", "values": [value], "hex": None}
    return GroupValues.model_validate({**made, "counts": [3], **fields})


def test_a_row_has_what_is_left_out_and_words_where_there_are_some() -> None:
    columns = [
        values("x", "count_nonzero", 1, nans=[2]),
        values("x", "max", 2.5, nans=[2]),
        values("when", "max", 7, words=["1970-01-01T00:00:07"]),
    ]
    assert described(columns, 6) == (
        ["column", "count", "nulls", "nans", "zeros", "max"],
        [["x", 3, 1, 2, 2, 2.5], ["when", 3, 3, 0, None, "1970-01-01T00:00:07"]],
    )
    nothing = values("x", "max", None).model_copy(update={"values": (), "counts": ()})
    assert described([nothing], 0)[1] == [["x", 0, 0, 0, None]]
