"""Files that are larger than the pieces in which a CPU slot reads them: along axes, by segments and by key they have
the values of exact arithmetic."""

import json
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pyarrow
import pytest
import zarr
from numpy.typing import NDArray
from pyarrow import csv, parquet

from tests.support.leases import lease_on
from warpfold.contract.folders import ArtefactFolder, Folders
from warpfold.contract.kinds.groupby import GroupbyResult
from warpfold.contract.kinds.reduce import ReduceArrayResult
from warpfold.kernels.cpu import pieces
from warpfold.kernels.cpu.grouped import reducing
from warpfold.worker.execute import Kernels

SHAPE = (30, 11, 7)
ROWS = 2310


def elements() -> NDArray[np.float64]:
    """Sums of these elements differ with every order of additions."""
    random = np.random.default_rng(3)
    wide = random.standard_normal(ROWS) * np.exp2(random.integers(-40, 40, ROWS))
    wide[1::2] = -wide[::2] * (1 + 2.0**-50)
    return wide


CUBE = elements().reshape(SHAPE)
KEYS = np.random.default_rng(4).integers(0, 40, ROWS)


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("data").resolve()
    np.save(folder / "c.npy", CUBE)
    np.save(folder / "fortran.npy", np.asfortranarray(CUBE))
    np.savez_compressed(folder / "packed.npz", x=CUBE)
    with h5py.File(folder / "chunks.h5", "w") as file:
        file.create_dataset("x", data=CUBE, chunks=(4, 5, 7), compression="gzip")
    stored = zarr.create_array(folder / "chunks.zarr", shape=SHAPE, chunks=(4, 5, 7), dtype="float64")
    stored[:] = CUBE
    table = pyarrow.table({"k": KEYS, "x": elements()})
    parquet.write_table(table, folder / "groups.parquet", row_group_size=100)
    csv.write_csv(table, folder / "groups.csv")
    np.save(folder / "k.npy", KEYS)
    np.save(folder / "x.npy", elements())
    return folder


@pytest.fixture(params=["small pieces", "pieces as they are"])
def kernels(request: pytest.FixtureRequest, root: Path, monkeypatch: pytest.MonkeyPatch) -> Kernels:
    """A CPU slot that reads 64 elements at a time, or as many as it does."""
    if request.param == "small pieces":
        for module, name in ((pieces, "ARRAY_PIECE"), (pieces, "LARGE_PIECE"), (pieces, "MADE_PIECE"),
                             (pieces, "DECODED_PIECE"), (reducing, "ARRAY_PIECE"), (reducing, "MADE_PIECE"),
                             (reducing, "_LARGEST_PIECE")):  # fmt: skip
            monkeypatch.setattr(module, name, 64)
        monkeypatch.setattr("warpfold.kernels.formats.frames.PART_ROWS", 64)
        monkeypatch.setattr("warpfold.kernels.cpu.keyed.reducing.PART_ROWS", 64)
    folders = Folders((root,), root, artefacts=ArtefactFolder(root / "artefacts", 1 << 20, 0))
    return Kernels("cpu", "here:cpu", folders, cpu_cache_bytes=8 << 20)


def ran(kernels: Kernels, **spec: Any) -> dict[str, Any]:
    return dict(kernels.run(lease_on(json.dumps(spec)), lambda news: None).result)


def rounded(members: NDArray[np.float64]) -> float:
    return float(sum(map(Fraction, members.reshape(-1).tolist()), Fraction()))


FILES: list[dict[str, Any]] = [
    {"type": "path", "path": "c.npy"},
    {"type": "path", "path": "fortran.npy"},
    {"type": "array", "path": "packed.npz"},
    {"type": "array", "path": "chunks.h5"},
    {"type": "array", "path": "chunks.zarr"},
]


@pytest.mark.parametrize("source", FILES, ids=lambda source: source["path"])
def test_axes_and_segments_of_a_file_in_pieces_are_those_of_rationals(kernels: Kernels, source: dict[str, Any]) -> None:
    for axis in (0, 1, -1, [0, 2]):
        made = ReduceArrayResult.model_validate(ran(kernels, kind="reduce", source=source, axis=axis))
        behind = np.moveaxis(CUBE, axis, list(range(-len(axis), 0)) if isinstance(axis, list) else -1)
        rows = behind.reshape(len(made.values or ()), -1)
        assert list(made.values or ()) == [rounded(row) for row in rows], axis
    offsets = [0, 0, 5, 1000, 1001, ROWS]
    made = ReduceArrayResult.model_validate(ran(kernels, kind="reduce", source=source, segments={"offsets": offsets}))
    flat = CUBE.reshape(-1)
    assert list(made.values or ()) == [rounded(flat[start:stop]) for start, stop in pairwise(offsets)]


TABLES: list[dict[str, Any]] = [
    {
        "source": {"type": "table", "path": "groups.parquet"},
        "by": ["k"],
        "aggregations": [{"op": "sum", "column": "x"}],
    },
    {"source": {"type": "table", "path": "groups.csv"}, "by": ["k"], "aggregations": [{"op": "sum", "column": "x"}]},
    {
        "by": [{"source": {"type": "path", "path": "k.npy"}, "name": "k"}],
        "aggregations": [{"op": "sum", "source": {"type": "path", "path": "x.npy"}, "name": "x"}],
    },
]


@pytest.mark.parametrize("table", TABLES, ids=["parquet", "csv", "npy"])
def test_groups_of_a_file_in_pieces_are_those_of_rationals(kernels: Kernels, table: dict[str, Any]) -> None:
    made = GroupbyResult.model_validate(ran(kernels, kind="groupby", **table))
    keys, sums = made.keys[0].values, made.columns[0].values
    wanted = {key: rounded(elements()[key == KEYS]) for key in sorted(set(KEYS.tolist()))}
    assert dict(zip(keys or (), sums or (), strict=True)) == wanted
