"""Groups of decimals, instants and durations: each value is that of fractions over the rows of its group."""

from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from tests.support.table_files import FORMATS
from warpfold.client import group_table
from warpfold.contract.folders import Folders
from warpfold.contract.keyed import open_rows, plan_of
from warpfold.contract.kinds.groupby import GroupbySpec
from warpfold.kernels.cpu.backend import CpuBackend
from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.parts.row_partitions import reduce_rows

pa: Any = pytest.importorskip("pyarrow")

KEYS = ["a", "b", "a", "b", "c", "a"]
PRICES = [Decimal("0.10"), Decimal("-7.25"), Decimal("0.20"), Decimal("3.00"), None, Decimal("0.40")]
TIMES = [10, 20, 31, None, None, 32]

Ran = Callable[[dict[str, Any]], Any]


def grouped(ran: Ran, root: Path, name: str, column: str, *ops: str, **spec: Any) -> Any:
    made = pa.table(
        {
            "k": KEYS,
            "price": pa.array(PRICES, pa.decimal128(9, 2)),
            "t": pa.array(TIMES, pa.timestamp("us", "UTC")),
            "d": pa.array(TIMES, pa.duration("s")),
        }
    )
    FORMATS[name](root / name, made, 4)
    source = {"type": "table", "path": name, "null_policy": spec.pop("null_policy", "omit")}
    asked = {"kind": "groupby", "source": source, "by": ["k"], **spec}
    asked["aggregations"] = [{"op": op, "column": column} for op in ops]
    return ran(asked)


@pytest.mark.parametrize("name", ["x.parquet", "x.arrow", "x.arrows"])
def test_decimals_by_key_are_exact(ran: Ran, root: Path, name: str) -> None:
    result = grouped(ran, root, name, "price", "sum", "mean", "max", "count_nonzero")
    total, mean, most, count = result.columns
    assert total.words == ("0.70", "-4.25", "0.00")
    assert (total.values, total.dtype) == ((0.7, -4.25, 0.0), "float64")
    assert mean.values == (float(Fraction(7, 30)), -2.125, None)
    assert (mean.words, mean.op) == (None, "mean")
    assert most.words == ("0.40", "3.00", None)
    assert (count.values, count.words) == ((3, 2, 0), None)


def test_instants_and_durations_by_key_keep_their_integers(ran: Ran, root: Path) -> None:
    latest, mean, middle = grouped(ran, root, "x.parquet", "t", "max", "mean", "median").columns
    assert (latest.values, latest.dtype) == ((32, 20, None), "timestamp[us, tz=UTC]")
    assert latest.words[0] == "1970-01-01T00:00:00.000032+00:00"
    assert (mean.values, mean.hex) == ((24, 20, None), None)
    assert (middle.values, middle.dtype) == ((31, 20, None), "timestamp[us, tz=UTC]")
    (total,) = grouped(ran, root, "x.parquet", "d", "sum", null_policy="propagate").columns
    assert (total.values, total.words) == ((73, None, None), ("PT1M13S", None, None))


def test_an_op_and_states_without_a_meaning_are_refused_by_their_field(ran: Ran, root: Path) -> None:
    with pytest.raises(InvalidInput, match=r"sum takes no timestamp\[us, tz=UTC\] so far") as caught:
        grouped(ran, root, "x.parquet", "t", "max", "sum")
    assert caught.value.field == "aggregations.1.op"
    with pytest.raises(InvalidInput, match="decimals have no exact states by key so far") as caught:
        grouped(ran, root, "x.parquet", "price", "sum", states=True)
    assert caught.value.field == "states"


def test_the_clients_table_has_the_types_of_the_columns(ran: Ran, root: Path) -> None:
    for column, op, kind in (("price", "sum", "decimal"), ("t", "max", "timestamp"), ("d", "sum", "duration")):
        result = grouped(ran, root, "x.parquet", column, op)
        table = group_table.GroupbyResult.model_validate_json(result.model_dump_json()).to_arrow()
        assert str(table.schema.field(1).type).startswith(kind)
        assert table.column(0).to_pylist() == ["a", "b", "c"]


def test_durations_beyond_64_bits_are_integers_in_a_table(ran: Ran, root: Path) -> None:
    for times in (2, 5):  # int64 does not hold the sum, nor does uint64
        whole = pa.table({"k": ["a"] * times, "d": pa.array([2**62] * times, pa.duration("s"))})
        FORMATS["x.parquet"](root / "long.parquet", whole, 4)
        spec = {"kind": "groupby", "source": {"type": "table", "path": "long.parquet"}, "by": ["k"]}
        asked = GroupbySpec.model_validate({**spec, "aggregations": [{"op": "sum", "column": "d"}]})
        table = CpuBackend(8 << 20).group_by(open_rows(asked, Folders((root,), root)), plan_of(asked))
        assert table.table().column(1).to_pylist() == [Decimal(times * 2**62)]


def test_partitions_of_a_cluster_refuse_them(ran: Ran, root: Path) -> None:
    grouped(ran, root, "x.parquet", "t", "max")  # which writes the file
    spec = GroupbySpec.model_validate(
        {
            "kind": "groupby",
            "source": {"type": "table", "path": "x.parquet"},
            "by": ["k"],
            "aggregations": [{"op": "max", "column": "t"}],
        }
    )
    with pytest.raises(InvalidInput, match=r"take no timestamp\[us, tz=UTC\] so far") as caught:
        reduce_rows(CpuBackend(), open_rows(spec, Folders((root,), root)), plan_of(spec), 0)
    assert caught.value.field == "backend"
