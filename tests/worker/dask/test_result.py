"""Reductions by key on a Dask cluster beside the same on a CPU slot."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pytest
from pyarrow import ipc, parquet

from tests.support.leases import lease_on
from warpfold.contract.folders import ArtefactFolder, Folders
from warpfold.contract.kinds.groupby import GroupbyResult
from warpfold.kernels.errors import InvalidInput
from warpfold.worker.dask.options import ClusterOptions
from warpfold.worker.execute import Kernels

OPS = (
    *("sum", "mean", "norm1", "norm2", "sum_squares", "var", "std"),
    *("min", "max", "norm_inf", "argmin", "argmax", "count_nonzero", "any", "all"),
)
ROWS = 5000


def table() -> Any:
    random = np.random.default_rng(5)
    words = ["north", "south", "east", None, "west"]
    values = random.choice([-0.0, 0.0, 1.5, -2.5, 1e16, np.nan], ROWS)
    return pyarrow.table({
        "region": [words[at] for at in random.integers(0, 5, ROWS)],
        "year": random.integers(2000, 2040, ROWS).astype(np.int16),
        "price": pyarrow.array([None if random.random() < 0.1 else value for value in values], pyarrow.float64()),
        "sold": random.integers(-(1 << 62), 1 << 62, ROWS),
        "small": values.astype(np.float32),
    })  # fmt: skip


def run(kernels: Kernels, **spec: Any) -> GroupbyResult:
    request = lease_on(json.dumps({"kind": "groupby", **spec}))
    return GroupbyResult.model_validate(kernels.run(request, lambda news: None).result)


def both(cluster: Kernels, alone: Kernels, partitions: int = 6, **asked: Any) -> GroupbyResult:
    spread, expected = run(cluster, backend="dask", partitions=partitions, **asked), run(alone, **asked)
    # Only a CPU slot counts the NaNs that it leaves out.
    columns = tuple(column.model_copy(update={"nans": None}) for column in expected.columns)
    expected = expected.model_copy(update={"columns": columns})
    for name in ("groups", "keys", "columns", "sizes", "rows", "dropped", "correctly_rounded"):
        assert repr(getattr(spread, name)) == repr(getattr(expected, name)), name
    return spread


@pytest.mark.parametrize("policy", ["propagate", "omit"])
def test_every_op_of_every_column_gives_the_bits_of_one_slot(
    spreading: Kernels, alone: Kernels, tmp_path: Path, policy: str
) -> None:
    parquet.write_table(table(), tmp_path / "x.parquet", row_group_size=700)
    source = {"type": "table", "path": "x.parquet"}
    asked = [{"op": op, "column": column} for op in OPS for column in ("price", "sold", "small")]
    both(spreading, alone, source=source, by=["region", "year"], aggregations=asked, nan_policy=policy)
    digits: dict[str, Any] = {"aggregations": [{"op": op, "column": "sold"} for op in ("sum", "mean")], "digits": 30}
    both(spreading, alone, source=source, by=["region"], **digits)


def test_groups_in_the_order_of_first_rows_null_keys_and_least_counts(
    spreading: Kernels, alone: Kernels, tmp_path: Path
) -> None:
    parquet.write_table(table(), tmp_path / "x.parquet", row_group_size=100)
    source = {
        "type": "table",
        "path": "x.parquet",
        "filter": {"column": "year", "op": ">=", "value": 2010},
    }
    asked = [{"op": "sum", "column": "price"}, {"op": "argmax", "column": "sold"}]
    for options in ({"sort": False}, {"dropna": False}, {"min_count": 900}, {"sort": False, "dropna": False}):
        result = both(spreading, alone, 20, source=source, by=["region"], aggregations=asked, **options)
        assert result.partitions is not None
        assert result.partitions.partitions == 20


def test_tables_in_files_and_arrays_side_by_side(spreading: Kernels, alone: Kernels, tmp_path: Path) -> None:
    whole = table()
    for number in range(4):
        part = whole.slice(number * 1000, 1000)
        with ipc.new_file(tmp_path / f"part-{number}.arrow", part.schema) as writer:
            writer.write_table(part)
    asked = [{"op": "mean", "column": "price"}, {"op": "argmin", "column": "price"}]
    both(spreading, alone, 3, source={"type": "files", "glob": "*.arrow"}, by=["year"], aggregations=asked)
    made = {"type": "generate", "n": 3000, "seed": 3}
    key = made | {"distribution": "uniform", "dtype": "uint8"}
    value = made | {"distribution": "normal", "dtype": "float64"}
    result = both(
        spreading, alone, 7, by=[{"name": "k", "source": key}],
        aggregations=[{"op": "var", "name": "v", "source": value}, {"op": "argmax", "name": "a", "source": value}],
    )  # fmt: skip
    assert result.partitions is not None
    assert result.partitions.partitions == 7
    keys = {"type": "values", "values": ["b", "a", "b"]}
    both(
        spreading, alone, by=[{"name": "k", "source": keys}],
        aggregations=[{"op": "sum", "name": "v", "source": {"type": "values", "values": [1e16, 2.5, 2.0]}}],
    )  # fmt: skip


def test_large_tables_are_merged_on_workers_first(
    spreading: Kernels, alone: Kernels, tmp_path: Path, merges: list[int]
) -> None:
    parquet.write_table(table(), tmp_path / "x.parquet", row_group_size=100)
    asked = [{"op": op, "column": "sold"} for op in ("sum", "std", "argmin", "max")]
    for sort in (True, False):
        both(
            spreading, alone, 50, source={"type": "table", "path": "x.parquet"}, by=["year", "region"],
            aggregations=asked, sort=sort,
        )  # fmt: skip
    assert 3 in merges


def test_states_of_groups_are_the_bytes_of_one_slot(scheduler: str, tmp_path: Path) -> None:
    parquet.write_table(table(), tmp_path / "x.parquet", row_group_size=700)
    stored: list[Any] = []
    for slot in ("dask", "cpu"):
        artefacts = ArtefactFolder(tmp_path / slot, 1 << 24, 0)
        folders = Folders((tmp_path,), tmp_path, artefacts=artefacts)
        options = ClusterOptions(scheduler) if slot == "dask" else None
        kernels = Kernels(slot, f"here:{slot}", folders, cpu_cache_bytes=8 << 20, cluster=options)
        asked = [{"op": "mean", "column": "price"}, {"op": "var", "column": "small"}]
        spec = {"source": {"type": "table", "path": "x.parquet"}, "by": ["year"], "aggregations": asked}
        run(kernels, **spec, states=True, backend=slot)
        (file,) = (tmp_path / slot).rglob("table.arrow")
        stored.append(ipc.open_file(file).read_all())
        kernels.close()
    assert stored[0].schema.metadata == stored[1].schema.metadata
    assert repr(stored[0].to_pylist()) == repr(stored[1].to_pylist())  # a NaN equals none


def test_nulls_propagate_to_their_groups_alone(spreading: Kernels, alone: Kernels, tmp_path: Path) -> None:
    parquet.write_table(table(), tmp_path / "x.parquet", row_group_size=700)
    source = {"type": "table", "path": "x.parquet", "null_policy": "propagate"}
    asked = [{"op": op, "column": column} for op in ("sum", "var", "argmin") for column in ("price", "sold")]
    result = both(spreading, alone, source=source, by=["year", "region"], aggregations=asked)
    assert result.columns[0].values is not None
    assert {value is None for value in result.columns[0].values} == {True, False}


def test_faults_name_a_partition_or_a_field(spreading: Kernels, tmp_path: Path) -> None:
    parquet.write_table(table(), tmp_path / "x.parquet", row_group_size=700)
    source = {"type": "table", "path": "x.parquet"}
    asked = [{"op": "sum", "column": "small"}]
    with pytest.raises(InvalidInput, match=r"partition \d of 5 \(row groups .*is NaN") as refused:
        run(spreading, backend="dask", partitions=5, source=source, by=["year"], aggregations=asked, nan_policy="raise")
    assert refused.value.field == "nan_policy"
    with pytest.raises(InvalidInput, match="max_groups") as refused:
        run(spreading, backend="dask", partitions=5, source=source, by=["year"], aggregations=asked, max_groups=7)
    assert refused.value.field == "max_groups"
    pieces = [
        pyarrow.table({"k": [1], "x": [1.0]}),
        pyarrow.table({"k": pyarrow.array([2], pyarrow.int8()), "x": [1.0]}),
    ]
    for number, piece in enumerate(pieces):
        parquet.write_table(piece, tmp_path / f"part-{number}.parquet")
    files = {"type": "files", "glob": "part-*.parquet"}
    with pytest.raises(InvalidInput, match="all need one type"):
        run(spreading, backend="dask", partitions=2, source=files, by=["k"], aggregations=[{"column": "x"}])
