"""Jobs with `states`, and jobs that merge their tables, as the child of a CPU slot runs them."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import UUID

import numpy as np
import pyarrow
import pytest
from pyarrow import ipc, parquet

from tests.support.leases import lease_on
from warpfold.app.artefacts.formats import CSV_BEGIN, CsvPlace, arrow_of, csv_piece, parquet_of
from warpfold.app.artefacts.store import ArtefactName, ArtefactStore
from warpfold.contract.artefact import Artefact
from warpfold.contract.folders import ArtefactFolder, Folders
from warpfold.contract.jobs import result_of
from warpfold.contract.kinds.merge import MergeResult
from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.exact import ExactState
from warpfold.worker.execute import Kernels

Run = Callable[..., tuple[Any, UUID]]
RNG = np.random.default_rng(16)
ARRAY = RNG.normal(size=(9, 3, 4)) * np.exp(RNG.normal(size=(9, 3, 4)) * 40)


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the files, and of what is stored."""
    return tmp_path_factory.mktemp("data").resolve()


@pytest.fixture(scope="module")
def run(root: Path) -> Run:
    """Runs a job in the folder, keeps what it stored, and gives its result and its id."""
    artefacts = ArtefactFolder(root / "artefacts", 1 << 24, 0)
    kernels = Kernels("cpu", "here:cpu", Folders((root,), root, artefacts=artefacts), cpu_cache_bytes=8 << 20)

    def ran(**spec: Any) -> tuple[Any, UUID]:
        lease = lease_on(json.dumps(spec))
        success = kernels.run(lease, lambda _: None)
        if success.stored is not None:
            ArtefactStore(root / "artefacts").place(ArtefactName(lease.job_id, lease.attempt))
        return result_of(json.dumps(success.result)), lease.job_id

    return ran


def folder_of(root: Path, job: UUID) -> Path:
    return ArtefactStore(root / "artefacts").path(ArtefactName(job, 1))


def sharded(root: Path, run: Run, op: str, **fields: Any) -> list[dict[str, Any]]:
    """The states of shards of the array along its first axis, one of them empty, as tables of a merge."""
    tables = []
    for number, (start, stop) in enumerate([(0, 2), (2, 2), (2, 9)]):
        np.save(root / f"shard-{number}.npy", ARRAY[start:stop])
        _, job = run(
            kind="reduce", source={"type": "path", "path": f"shard-{number}.npy"}, op=op, axis=0, states=True, **fields
        )
        tables.append({"type": "artefact", "job_id": str(job)})
    return tables


@pytest.mark.parametrize(("op", "fields"), [("sum", {}), ("var", {"ddof": 1}), ("norm2", {})])
def test_shards_of_an_array_merge_to_the_bits_of_the_whole(
    root: Path, run: Run, op: str, fields: dict[str, Any]
) -> None:
    np.save(root / "whole.npy", ARRAY)
    whole, _ = run(kind="reduce", source={"type": "path", "path": "whole.npy"}, op=op, axis=0, **fields)
    assert whole.artefact is None
    merge_result, job = run(kind="merge", tables=sharded(root, run, op, **fields), states=True)
    assert isinstance(merge_result, MergeResult)
    assert (merge_result.columns[0].hex, merge_result.shape, merge_result.tables) == (whole.hex, (3, 4), 3)
    assert (merge_result.groups, merge_result.sizes, merge_result.rows) == (12, (9,) * 12, 9 * 12)
    assert [keys.values for keys in merge_result.keys] == [
        tuple(index) for index in np.indices((3, 4)).reshape(2, -1).tolist()
    ]
    again, _ = run(kind="merge", tables=[{"type": "artefact", "job_id": str(job)}])
    assert (again.columns, again.artefact) == (merge_result.columns, None)


def test_states_of_values_are_a_part_of_the_artefact_and_a_column_of_its_tables(root: Path, run: Run) -> None:
    many = RNG.normal(size=(70_000, 2))
    np.save(root / "many.npy", many)
    result, job = run(kind="reduce", source={"type": "path", "path": "many.npy"}, axis=1, states=True)
    assert (result.values, [part.name for part in result.artefact.parts]) == (None, ["values", "states"])
    folder = folder_of(root, job)
    stored = ipc.open_file(folder / "states.arrow").read_all()
    assert stored.column_names == ["axis_0", "state"]
    for row in (0, 65_535, 65_536, 69_999):
        assert stored["state"][row].as_py() == ExactState.of(many[row]).to_bytes()
    for made in (
        ipc.open_file(pyarrow.BufferReader(b"".join(arrow_of(result.artefact, folder)))).read_all(),
        parquet.read_table(pyarrow.BufferReader(b"".join(parquet_of(result.artefact, folder)))),
    ):
        assert made["state"].to_pylist() == stored["state"].to_pylist()
        assert made.schema.metadata.items() >= stored.schema.metadata.items()
    pieces: list[bytes] = []
    place: CsvPlace | None = CSV_BEGIN
    while place is not None:
        piece, place = csv_piece(result.artefact, folder, place)
        pieces.append(piece)
    lines = b"".join(pieces).decode().splitlines()
    assert lines[0] == "axis_0,value,hex,count,state"
    assert (len(lines), lines[1].split(",")[4][:6]) == (70_001, "V0ZYUw")


def test_few_values_stand_in_the_result_beside_their_states(root: Path, run: Run) -> None:
    source = {"type": "values", "values": [1.0, 2.0, 4.0]}
    result, job = run(kind="reduce", source=source, segments={"offsets": [0, 2, 2, 3]}, op="mean", states=True)
    assert (result.values, result.counts) == ((1.5, None, 4.0), (2, 0, 1))
    assert isinstance(result.artefact, Artefact)
    states = ipc.open_file(folder_of(root, job) / "states.arrow").read_all()["state"].to_pylist()
    assert [ExactState.from_bytes(state).count for state in states] == [2, 0, 1]


SALES = {"region": ["south", "north", None, "north", "south", "east"], "price": [1e16, 2.5, 7.0, -2.5, 1.0, 3.0]}


def test_shards_of_a_table_merge_to_the_groups_of_the_whole(root: Path, run: Run) -> None:
    table = pyarrow.table(SALES)
    aggregations = [{"op": "sum", "column": "price"}, {"op": "std", "column": "price", "ddof": 1}]

    def grouped(rows: pyarrow.Table, name: str, **fields: Any) -> tuple[Any, UUID]:
        parquet.write_table(rows, root / name)
        source = {"type": "table", "path": name}
        return run(kind="groupby", source=source, by=["region"], aggregations=aggregations, **fields)

    whole, _ = grouped(table, "sales.parquet")
    assert whole.artefact is None
    first, job = grouped(table.slice(0, 2), "first.parquet", states=True)
    assert (first.columns[0].values, first.artefact.rows) == ((2.5, 1e16), 2)
    assert first.artefact.preview_columns == (
        "region",
        "price_sum",
        "price_sum_hex",
        "price_std",
        "price_std_hex",
        "rows",
    )
    _, other = grouped(table.slice(2), "second.parquet", states=True)
    # Parquet keeps what a table says of its states.
    (root / "other.parquet").write_bytes(b"".join(parquet_of(_artefact(root, run, other), folder_of(root, other))))
    merge_result, _ = run(
        kind="merge", tables=[{"type": "artefact", "job_id": str(job)}, {"type": "table", "path": "other.parquet"}]
    )
    for mine, theirs in zip(merge_result.columns, whole.columns, strict=True):
        assert (mine.hex, mine.counts, mine.column, mine.op) == (theirs.hex, theirs.counts, "price", theirs.op)
    assert (merge_result.keys, merge_result.sizes, merge_result.shape, merge_result.artefact) == (
        whole.keys,
        whole.sizes,
        None,
        None,
    )


def _artefact(root: Path, run: Run, job: UUID) -> Artefact:
    """The stored table of a group-by of these columns."""
    result, _ = run(kind="merge", tables=[{"type": "artefact", "job_id": str(job)}], states=True)
    assert result.artefact is not None
    return result.artefact  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    ("table", "field", "words"),
    [
        ({"type": "artefact", "job_id": str(UUID(int=7))}, "tables.1.job_id", "was deleted or has expired"),
        ({"type": "dataset", "id": "0" * 64}, "tables.1.id", "is not there"),
        ({"type": "table", "path": "plain.parquet"}, "tables.1", "its schema says nothing about states"),
        ({"type": "table", "path": "damaged.arrow"}, "tables.1.path", "damaged.arrow"),
    ],
)
def test_what_is_no_table_of_states_is_named(
    root: Path, run: Run, table: dict[str, str], field: str, words: str
) -> None:
    parquet.write_table(pyarrow.table(SALES), root / "plain.parquet")
    good = sharded(root, run, "sum")[0]
    stored = folder_of(root, UUID(good["job_id"])) / "states.arrow"
    (root / "damaged.arrow").write_bytes(stored.read_bytes()[:-100])
    with pytest.raises(InvalidInput) as caught:
        run(kind="merge", tables=[good, table])
    assert caught.value.field == field
    assert words in str(caught.value)


def test_a_table_of_values_without_states_is_refused(root: Path, run: Run) -> None:
    np.save(root / "long.npy", np.ones((10_001, 1)))
    _, job = run(kind="reduce", source={"type": "path", "path": "long.npy"}, axis=1)
    with pytest.raises(InvalidInput, match='holds no states: run the job with "states": true'):
        run(kind="merge", tables=[{"type": "artefact", "job_id": str(job)}])


def test_more_groups_than_a_result_holds_are_stored(root: Path, run: Run) -> None:
    parquet.write_table(pyarrow.table({"k": np.arange(10_001), "x": np.ones(10_001)}), root / "many.parquet")
    _, job = run(
        kind="groupby",
        source={"type": "table", "path": "many.parquet"},
        by=["k"],
        aggregations=[{"op": "sum", "column": "x"}],
        states=True,
    )
    twice = [{"type": "artefact", "job_id": str(job)}] * 2
    merge_result, merged = run(kind="merge", tables=twice)
    assert (merge_result.sizes, merge_result.columns[0].values, merge_result.groups) == (None, None, 10_001)
    stored = ipc.open_file(folder_of(root, merged) / "table.arrow").read_all()
    assert (stored.column_names, stored["x_sum"][7].as_py()) == (["k", "x_sum"], 2.0)


def test_a_result_beyond_the_quota_stores_nothing(root: Path, run: Run) -> None:
    source = {"type": "generate", "distribution": "normal", "n": 1_000_000, "seed": 1}
    with pytest.raises(InvalidInput, match="a user may hold 16,777,216") as caught:
        run(kind="reduce", source=source, segments={"length": 2}, states=True)
    assert caught.value.field == "segments"
    assert not list((root / "artefacts" / "incoming").glob("*"))
