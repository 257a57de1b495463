"""Group-by jobs as the child of a CPU slot runs them, from files of every format that holds a table."""

import json
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pytest
from pyarrow import csv, ipc, parquet

from tests.support.leases import lease_on
from warpfold.contract.folders import ArtefactFolder, Folders
from warpfold.contract.kinds.groupby import GroupbyResult
from warpfold.kernels.errors import InvalidInput
from warpfold.worker.execute import Kernels

Grouped = Callable[..., GroupbyResult]

SALES = {
    "region": ["south", "north", None, "north", "south", "east"],
    "year": [2024, 2024, 2024, 2025, 2024, 2025],
    "price": [1e16, 2.5, 7.0, -2.5, 1.0, None],
    "sold": [3, 1, 4, 1, 5, 9],
}


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the files."""
    return tmp_path_factory.mktemp("data").resolve()


@pytest.fixture(scope="module")
def grouped(root: Path) -> Grouped:
    """Runs a group-by job in the folder."""
    kernels = Kernels(
        "cpu",
        "here:cpu",
        Folders((root,), root, artefacts=ArtefactFolder(root / "artefacts", 1 << 20, 0)),
        cpu_cache_bytes=8 << 20,
    )

    def run(**spec: Any) -> GroupbyResult:
        lease = lease_on(json.dumps({"kind": "groupby", **spec}), queued_ms=1.0)
        return GroupbyResult.model_validate(kernels.run(lease, lambda _: None).result)

    return run


def written(root: Path, kind: str) -> dict[str, Any]:
    """The sales in a file of that kind, as a source."""
    table = pyarrow.table(SALES)
    path = root / f"sales.{kind}"
    if kind == "parquet":
        parquet.write_table(table, path, row_group_size=2)
    elif kind == "arrow":
        with ipc.new_file(path, table.schema) as file:
            file.write_table(table, max_chunksize=4)
    elif kind == "stream":
        with ipc.new_stream(path, table.schema) as file:
            file.write_table(table, max_chunksize=4)
    else:
        csv.write_csv(table, path)
    return {"type": "table", "path": path.name}


def columns(result: GroupbyResult) -> dict[str, list[Any]]:
    keys: dict[str, list[Any]] = {key.name: list(key.values or ()) for key in result.keys}
    return {**keys, **{column.name: list(column.values or ()) for column in result.columns}}


@pytest.mark.parametrize("kind", ["parquet", "arrow", "stream", "csv"])
def test_columns_of_a_table_are_reduced_by_keys_of_every_format(root: Path, grouped: Grouped, kind: str) -> None:
    source = written(root, kind)
    result = grouped(
        source=source,
        by=["region"],
        aggregations=[{"op": "sum", "column": "price"}, {"op": "max", "column": "sold", "name": "most"}],
    )
    assert columns(result) == {
        "region": ["east", "north", "south"],
        "price_sum": [0.0, 0.0, 1e16 + 1],
        "most": [9, 1, 5],
    }
    assert result.columns[0].counts == (0, 2, 2)
    assert result.columns[0].hex == ("0x0.0p+0", "0x0.0p+0", float(1e16 + 1).hex())
    assert (result.groups, result.sizes, result.rows, result.dropped) == (3, (1, 2, 2), 5, 1)
    assert (result.correctly_rounded, result.backend) == (True, "cpu")
    result = grouped(
        source={**source, "filter": {"op": ">", "column": "sold", "value": 1}},
        by=["region", "year"],
        aggregations=[{"op": "mean", "column": "sold"}],
        dropna=False,
        sort=False,
    )
    assert columns(result) == {
        "region": ["south", None, "east"], "year": [2024, 2024, 2025], "sold_mean": [4.0, 4.0, 9.0],
    }  # fmt: skip


def test_files_are_one_table(root: Path, grouped: Grouped) -> None:
    for part in range(3):
        parquet.write_table(pyarrow.table({"k": [part, 7], "x": [0.1, 0.2]}), root / f"part-{part}.parquet")
    asked: dict[str, Any] = {"by": ["k"], "aggregations": [{"op": "sum", "column": "x"}]}
    result = grouped(source={"type": "files", "glob": "part-*.parquet"}, **asked)
    assert columns(result) == {"k": [0, 1, 2, 7], "x_sum": [0.1, 0.1, 0.1, 0.6000000000000001]}
    parquet.write_table(pyarrow.table({"k": ["a"], "x": [0.1]}), root / "part-3.parquet")
    with pytest.raises(InvalidInput, match=r"holds column 'k' as string, and .* as int64") as caught:
        grouped(source={"type": "files", "glob": "part-*.parquet"}, **asked)
    assert caught.value.field == "source.glob"


def test_arrays_of_one_length_stand_side_by_side(root: Path, grouped: Grouped) -> None:
    np.save(root / "keys.npy", np.array([2, 1, 2], np.uint8))
    np.save(root / "values.npy", np.array([0.5, 0.25, 0.125], np.float32))
    asked = {"op": "sum", "name": "total", "source": {"type": "path", "path": "values.npy"}}
    keys = {"name": "k", "source": {"type": "path", "path": "keys.npy"}}
    assert columns(grouped(by=[keys], aggregations=[asked])) == {"k": [1, 2], "total": [0.25, 0.625]}
    fields = {"source": {"type": "values", "values": ["a", None, "a"]}}
    assert columns(grouped(by=[fields], aggregations=[asked])) == {"key": ["a"], "total": [0.625]}
    np.save(root / "keys.npy", np.array([2, 1], np.uint8))
    with pytest.raises(InvalidInput, match=r"has 3 elements, and by\.0\.source 2") as caught:
        grouped(by=[keys], aggregations=[asked])
    assert caught.value.field == "aggregations.0.source"


def test_means_of_integers_and_decimals_have_digits_in_words(root: Path, grouped: Grouped) -> None:
    decimals = [Decimal("0.1"), Decimal("0.1"), Decimal("0.2"), None]
    table = pyarrow.table({"k": [1, 1, 1, 2], "n": [1, 2, 2, 7], "d": decimals})
    parquet.write_table(table, root / "digits.parquet")
    asked = [{"op": op, "column": column} for column in "nd" for op in ("mean", "sum", "median")]
    result = grouped(source={"type": "table", "path": "digits.parquet"}, by=["k"], aggregations=asked, digits=20)
    assert {column.name: column.words for column in result.columns} == {
        "n_mean": ("1.6666666666666666667", "7"), "n_sum": None, "n_median": ("2", "7"),
        "d_mean": ("0.13333333333333333333", None), "d_sum": ("0.4", "0.0"), "d_median": ("0.1", None),
    }  # fmt: skip
    assert columns(result)["n_sum"] == [5, 7]
    fractions = {column.name: column.fractions for column in result.columns}
    assert fractions["n_mean"] == (Fraction(5, 3), Fraction(7))
    assert fractions["d_mean"] == (Fraction(2, 15), None)
    assert fractions["n_sum"] is fractions["d_sum"] is None
    assert result.model_dump(mode="json")["columns"][0]["fractions"] == ["5/3", "7"]


@pytest.mark.parametrize(
    ("changes", "field", "words"),
    [
        (
            {"digits": 5, "aggregations": [{"op": "mean", "column": "price"}]},
            "digits",
            "a float has those of its dtype",
        ),
        ({"by": ["regoin"]}, "by.0", "the table sales.parquet holds no column 'regoin'; did you mean 'region'"),
        ({"aggregations": [{"op": "sum", "column": "prize"}]}, "aggregations.0.column", "did you mean 'price'"),
        ({"aggregations": [{"op": "sum", "column": "region"}]}, "aggregations.0.column", "which is not reduced"),
        ({"aggregations": [{"op": "prod", "column": "price"}]}, "aggregations.0.op", "depend on the order"),
        ({"max_groups": 2}, "max_groups", "more than 2 groups: 3 were reached"),
        ({"source": {"type": "table", "path": "none.parquet"}}, "source.path", "none.parquet"),
        (
            {"source": {"type": "table", "path": "sales.parquet", "null_policy": "raise"}},
            "aggregations.0.column",
            "row 5 of 'price' is null",
        ),
    ],
)
def test_what_cannot_be_grouped_names_its_field(
    root: Path, grouped: Grouped, changes: dict[str, Any], field: str, words: str
) -> None:
    asked = {
        "source": written(root, "parquet"), "by": ["region"], "aggregations": [{"op": "sum", "column": "price"}],
    }  # fmt: skip
    with pytest.raises(InvalidInput) as caught:
        grouped(**{**asked, **changes})
    assert caught.value.field == field
    assert words in str(caught.value)


def test_a_job_that_reaches_too_many_groups_leaves_nothing(root: Path, grouped: Grouped) -> None:
    parquet.write_table(pyarrow.table({"k": np.arange(20_000), "x": np.ones(20_000)}), root / "more.parquet")
    before = sorted(path for path in (root / "artefacts").rglob("*") if path.is_file())
    with pytest.raises(InvalidInput, match="more than 15,000 groups: 20,000 were reached") as refused:
        grouped(
            source={"type": "table", "path": "more.parquet"}, by=["k"],
            aggregations=[{"op": "sum", "column": "x"}], max_groups=15_000,
        )  # fmt: skip
    assert refused.value.field == "max_groups"
    assert sorted(path for path in (root / "artefacts").rglob("*") if path.is_file()) == before


def test_more_groups_than_a_result_holds_are_stored_as_a_table(root: Path, grouped: Grouped) -> None:
    parquet.write_table(pyarrow.table({"k": np.arange(10_001), "x": np.ones(10_001)}), root / "many.parquet")
    source = {"type": "table", "path": "many.parquet"}
    asked: dict[str, Any] = {"by": ["k"], "aggregations": [{"op": "sum", "column": "x"}]}
    result = grouped(source=source, **asked)
    assert result.artefact is not None
    assert (result.groups, result.sizes, result.keys[0].values, result.columns[0].values) == (10_001, None, None, None)
    assert result.artefact.preview_columns == ("k", "x_sum", "x_sum_hex")
    assert result.artefact.preview[1] == (1, 1.0, "0x1.0000000000000p+0")
    stored = next(path for path in root.rglob("table.arrow") if path.stat().st_size == result.artefact.bytes)
    assert ipc.open_file(stored).read_all().to_pydict() == {"k": list(range(10_001)), "x_sum": [1.0] * 10_001}
    few = {"op": "<", "column": "k", "value": 10_000}
    assert grouped(source={**source, "filter": few}, **asked).artefact is None
