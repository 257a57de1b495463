"""Results that are too large to stand in a job, as the child of a CPU slot writes them."""

import hashlib
import json
import math
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import numpy as np
import pyarrow as pa
import pytest

from tests.support.artefacts import attempt_in
from tests.support.leases import lease_on
from warpfold.app.artefacts.formats import batches, listed
from warpfold.app.jobs.attempt import StoredResult, Success
from warpfold.contract.artefact import Artefact
from warpfold.contract.folders import ArtefactFolder, Folders, incoming_artefact
from warpfold.contract.jobs import result_of
from warpfold.contract.kinds.reduce import ReduceArrayResult
from warpfold.kernels.dtypes import DTYPES
from warpfold.kernels.errors import InvalidInput, Unavailable
from warpfold.worker import artefact_files
from warpfold.worker.artefacts import ArtefactWriter, Stored, store_table
from warpfold.worker.execute import Kernels
from warpfold.worker.kinds.attempt import Attempt

MOST_BYTES = 1 << 20
WIDE = np.array([[1e16], [1.0], [-1e16]]) * np.ones(10_001)


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("data").resolve()
    np.save(root / "wide.npy", WIDE)
    np.save(root / "whole.npy", np.arange(30_003, dtype=np.int32).reshape(3, 10_001))
    return root


@pytest.fixture(scope="module")
def folders(root: Path) -> Folders:
    return Folders((root,), root, artefacts=ArtefactFolder(root / "artefacts", MOST_BYTES, 0))


@pytest.fixture(scope="module")
def cpu(folders: Folders) -> Kernels:
    return Kernels("cpu", "here:cpu", folders, cpu_cache_bytes=8 << 20)


@pytest.fixture
def attempt(folders: Folders) -> Attempt:
    return attempt_in(folders)


def run(cpu: Kernels, job_id: UUID, **spec: Any) -> Success:
    return cpu.run(lease_on(json.dumps({"kind": "reduce", **spec}), job_id=job_id), lambda news: None)


def folder_of(root: Path, job_id: UUID) -> Path:
    return incoming_artefact(root / "artefacts", job_id, 1)


def stored(cpu: Kernels, root: Path, **spec: Any) -> tuple[ReduceArrayResult, Artefact, Path]:
    job_id = uuid4()
    success = run(cpu, job_id, **spec)
    result = result_of(json.dumps(success.result))
    assert isinstance(result, ReduceArrayResult)
    assert result.artefact is not None
    assert (result.values, result.hex, result.counts) == (None, None, None)
    assert success.stored == StoredResult(result.artefact.bytes, "axis" if "axis" in spec else "segments")
    assert result.artefact.href == f"/v1/jobs/{job_id}/artefact"
    return result, result.artefact, folder_of(root, job_id)


def test_many_values_are_stored_and_described(cpu: Kernels, root: Path) -> None:
    result, artefact, folder = stored(cpu, root, source={"type": "path", "path": "wide.npy"}, axis=0, keepdims=True)
    assert (result.shape, result.dtype, result.count, result.correctly_rounded) == (
        (1, 10_001),
        "float64",
        30_003,
        True,
    )
    values = np.load(folder / "values.npy")
    assert values.shape == (1, 10_001)
    assert (values == 1.0).all()
    [part] = artefact.parts
    data = (folder / "values.npy").read_bytes()
    assert (part.bytes, part.sha256, part.dtype) == (len(data), hashlib.sha256(data).hexdigest(), "<f8")
    assert (artefact.bytes, artefact.sha256, artefact.rows, artefact.count_each) == (len(data), part.sha256, 10_001, 3)
    assert artefact.preview_columns == ("axis_0", "axis_1", "value", "hex", "count")
    assert len(artefact.preview) == 100
    assert artefact.preview[99] == (0, 99, 1.0, "0x1.0000000000000p+0", 3)
    assert [column.name for column in artefact.columns] == ["axis_0", "axis_1", "value", "count"]


def test_many_values_of_a_packed_array_are_stored_as_floats(cpu: Kernels, root: Path) -> None:
    h5py = pytest.importorskip("h5py")
    packed = np.arange(20_002, dtype=np.int16).reshape(2, -1)
    with h5py.File(root / "packed.h5", "w") as file:
        file["x"] = packed
        file["x"].attrs.update({"scale_factor": 0.25, "add_offset": -5.0})
    result, _, folder = stored(cpu, root, source={"type": "array", "path": "packed.h5"}, axis=0, op="mean")
    assert (result.dtype, result.correctly_rounded) == ("float64", True)
    assert np.load(folder / "values.npy").tolist() == (packed.mean(axis=0) * 0.25 - 5).tolist()
    _, artefact, folder = stored(cpu, root, source={"type": "array", "path": "packed.h5"}, axis=0, op="argmax")
    assert (artefact.parts[0].dtype, np.load(folder / "values.npy").tolist()) == ("<i8", [1] * 10_001)


def test_values_that_are_missing_and_counts_are_parts(cpu: Kernels, root: Path) -> None:
    source = {"type": "generate", "distribution": "arange", "n": 20_003, "shape": [20_003, 1], "dtype": "float64"}
    result, artefact, folder = stored(cpu, root, source=source, segments={"length": 2}, op="var", ddof=1)
    assert (result.count, artefact.count_each, artefact.shape) == (20_003, None, (10_002,))
    assert [part.name for part in artefact.parts] == ["values", "counts", "missing"]
    values, missing = np.load(folder / "values.npy"), np.load(folder / "missing.npy")
    assert (values[:-1] == 0.5).all()
    assert missing.tolist() == [False] * 10_001 + [True]
    assert math.isnan(values[-1])
    assert np.load(folder / "counts.npy").tolist() == [2] * 10_001 + [1]


def test_integers_are_exact_of_any_size(cpu: Kernels, root: Path) -> None:
    result, artefact, folder = stored(cpu, root, source={"type": "path", "path": "whole.npy"}, axis=0)
    assert (result.dtype, artefact.parts[0].dtype) == ("integer", "<i8")
    assert artefact.columns[1].dtype == "int64"
    assert np.load(folder / "values.npy").tolist() == [3 * n + 30_003 for n in range(10_001)]


def test_integers_beyond_64_bits_become_text(attempt: Attempt) -> None:
    with ArtefactWriter(attempt, (4, 2), "integer", each=1, field="axis") as writer:
        writer.append([1, -(2**63)], [1, 1])
        writer.append((2**64, None), [1, 0])
        writer.append([10**40, 3], [1, 1])
        writer.append(np.array([5, 6]), np.ones(2, np.int64))
        done = writer.finish()
    folder = incoming_artefact(attempt.folders.artefacts.path, attempt.lease.job_id, 1)  # type: ignore[union-attr]
    texts = np.load(folder / "values.npy")
    assert [int(text) for text in texts.ravel()] == [1, -(2**63), 2**64, 0, 10**40, 3, 5, 6]
    assert texts.shape == (4, 2)
    assert np.load(folder / "missing.npy").ravel().tolist() == [False, False, False, True, False, False, False, False]
    assert done.artefact.parts[0].sha256 == hashlib.sha256((folder / "values.npy").read_bytes()).hexdigest()
    assert done.artefact.columns[2].dtype == "integer"
    assert done.artefact.preview[3] == (1, 1, None, 0)
    assert sorted(path.name for path in folder.iterdir()) == ["missing.npy", "values.npy"]


@pytest.mark.parametrize("dtype", ["uint64", "int64", "uint8", "bool", "bfloat16", "float32"])
def test_values_of_every_dtype_are_stored_as_they_are(attempt: Attempt, dtype: str) -> None:
    row = DTYPES[dtype]
    low, high = (1.5, -0.0) if row.is_float else row.bounds
    values = [False, True, None] if dtype == "bool" else [low, high, high // 2 + 1, None]
    with ArtefactWriter(attempt, (len(values),), dtype, each=1, field="axis") as writer:
        writer.append(values, [1] * len(values))
        done = writer.finish()
    folder = incoming_artefact(attempt.folders.artefacts.path, attempt.lease.job_id, 1)  # type: ignore[union-attr]
    (batch,) = batches(done.artefact, folder, 10)
    assert listed(batch.values)[:-1] == values[:-1]
    assert batch.missing.tolist() == [False] * (len(values) - 1) + [True]


def test_a_result_beyond_the_quota_names_the_field_and_leaves_nothing(cpu: Kernels, root: Path) -> None:
    source = {"type": "generate", "distribution": "arange", "n": 600_000, "shape": [300_000, 2]}
    job_id = uuid4()
    with pytest.raises(
        InvalidInput, match="axis: the result would have 1,200,000 bytes, and a user may hold 1,048,576"
    ):
        run(cpu, job_id, source=source, axis=1)
    assert not folder_of(root, job_id).exists()


def test_a_disk_without_room_is_said_and_nothing_is_left(
    cpu: Kernels, root: Path, attempt: Attempt, monkeypatch: pytest.MonkeyPatch
) -> None:
    full = ArtefactFolder(root / "artefacts", MOST_BYTES, 1 << 60)
    monkeypatch.setattr(cpu, "_folders", Folders((root,), root, artefacts=full))
    job_id = uuid4()
    with pytest.raises(Unavailable, match="no room"):
        run(cpu, job_id, source={"type": "path", "path": "wide.npy"}, axis=0)
    assert not folder_of(root, job_id).exists()
    monkeypatch.setattr(cpu, "_folders", Folders((root,), root))
    with pytest.raises(Unavailable, match="no folder for results"):
        run(cpu, job_id, source={"type": "path", "path": "wide.npy"}, axis=0)

    def refuse(*_: object) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(artefact_files.Column, "write", refuse)
    with pytest.raises(Unavailable, match="cannot be stored on the disk: it is full"):
        ArtefactWriter(attempt, (3,), "float64", each=1, field="axis")


def test_what_fails_in_the_middle_leaves_nothing(cpu: Kernels, root: Path) -> None:
    with_nan = WIDE.copy()
    with_nan[1, 9_999] = np.nan
    np.save(root / "nan.npy", with_nan)
    job_id = uuid4()
    with pytest.raises(InvalidInput, match="nan_policy is raise"):
        run(cpu, job_id, source={"type": "path", "path": "nan.npy"}, axis=0, nan_policy="raise")
    assert not folder_of(root, job_id).exists()
    result, artefact, folder = stored(
        cpu, root, source={"type": "path", "path": "nan.npy"}, axis=0, nan_policy="omit", op="mean"
    )
    assert (result.count, artefact.count_each) == (30_002, None)
    assert np.load(folder / "counts.npy")[9_998:].tolist() == [3, 2, 3]
    assert np.load(folder / "values.npy")[9_999] == 0.0


def test_a_table_is_stored_as_an_arrow_file(attempt: Attempt, root: Path) -> None:
    table = pa.table({"key": ["a", None], "price.sum": [0.1, float("nan")], "state": [b"\0\1", b"\0"], "n": [3, 2**40]})
    done: Stored = store_table(attempt, table, field="by")
    folder = folder_of(root, attempt.lease.job_id)
    assert str(pa.ipc.open_file(folder / "table.arrow").read_all().to_pylist()) == str(table.to_pylist())
    artefact = done.artefact
    assert artefact.formats == ("arrow", "parquet", "csv")
    assert (artefact.rows, artefact.shape, artefact.dtype) == (2, (2,), None)
    assert artefact.preview_columns == ("key", "price.sum", "price.sum_hex", "n")
    assert artefact.preview[0] == ("a", 0.1, (0.1).hex(), 3)
    assert artefact.sha256 == hashlib.sha256((folder / "table.arrow").read_bytes()).hexdigest()
    assert done.note == StoredResult(artefact.bytes, "by")
    assert Artefact.model_validate_json(artefact.model_dump_json()).preview_columns == artefact.preview_columns


def test_a_table_beyond_the_quota_is_refused(attempt: Attempt, root: Path) -> None:
    with pytest.raises(InvalidInput, match="by: the result would have"):
        store_table(attempt, pa.table({"x": np.zeros(200_000)}), field="by")
    assert not folder_of(root, attempt.lease.job_id).exists()
