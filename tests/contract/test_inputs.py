"""Results name their input, for every source."""

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest

from tests.support.leases import lease_on
from tests.support.places.web import web_server
from warpfold.contract.folders import Folders, dataset_file
from warpfold.contract.inputs import InputView
from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.places.place import Places
from warpfold.worker.execute import Kernels
from warpfold.worker.messages import Progress

NUMBERS = np.arange(300_000.0)


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("inputs")
    np.save(folder / "a.npy", NUMBERS)
    np.save(folder / "b.npy", NUMBERS[:10])
    pyarrow.parquet.write_table(pyarrow.table({"x": NUMBERS}), folder / "t.parquet")
    (folder / "h.zarr").mkdir()
    return folder.resolve()


@pytest.fixture(scope="module")
def kernels(root: Path) -> Kernels:
    return Kernels("cpu", "here:cpu", Folders((root,), root / "datasets"))


def read_by(
    kernels: Kernels, source: dict[str, Any], news: Callable[[Any], None] = lambda news: None, **spec: Any
) -> Any:
    text = json.dumps({"kind": "reduce", "op": "sum", "source": source, **spec})
    success = kernels.run(lease_on(text), news)
    stored = success.result["input"]
    return None if stored is None else InputView.model_validate_json(json.dumps(stored))


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.mark.parametrize(
    ("source", "name"),
    [
        ({"type": "path", "path": "a.npy"}, "a.npy"),
        ({"type": "array", "path": "a.npy", "select": [{"start": 1}]}, "a.npy"),
        ({"type": "table", "path": "t.parquet"}, "t.parquet"),
        ({"type": "files", "paths": ["a.npy"]}, "a.npy"),
    ],
)
@pytest.mark.parametrize("fields", [{}, {"segments": {"length": 300}}])
def test_a_file_is_named_and_hashed_whole_if_that_was_asked_for(
    kernels: Kernels, root: Path, source: dict[str, Any], name: str, fields: dict[str, Any]
) -> None:
    if source["type"] == "array" and fields:
        source = {**source, "select": [{"stop": 300}]}
    plain = read_by(kernels, source, **fields)
    assert (plain.count, plain.bytes_read, plain.objects, plain.fingerprint) == (1, 0, (), None)
    [file] = plain.files
    assert (file.name, file.size) == (name, (root / name).stat().st_size)
    assert file.modified.timestamp() == pytest.approx((root / name).stat().st_mtime)
    hashed = read_by(kernels, source, fingerprint=True, **fields)
    assert hashed.fingerprint == hashed.files[0].sha256 == sha256(root / name)


def test_the_hash_of_a_dataset_is_known(kernels: Kernels, root: Path) -> None:
    digest = sha256(root / "a.npy")
    stored = dataset_file(root / "datasets", digest)
    stored.parent.mkdir(parents=True)
    stored.write_bytes((root / "a.npy").read_bytes())
    read = read_by(kernels, {"type": "dataset", "id": digest})
    assert (read.fingerprint, read.files[0].name, read.files[0].modified) == (digest, digest, None)


def test_several_files_have_one_fingerprint_together_in_their_order(kernels: Kernels, root: Path) -> None:
    hashes = [sha256(root / name) for name in ("a.npy", "b.npy")]
    read = read_by(kernels, {"type": "files", "glob": "*.npy"}, fingerprint=True)
    assert [file.sha256 for file in read.files] == hashes
    assert read.fingerprint == hashlib.sha256("".join(f"{each}\n" for each in hashes).encode()).hexdigest()
    file, other = {"type": "path", "path": "a.npy"}, {"type": "path", "path": "a.npy"}
    assert read_by(kernels, file, op="dot", other=other).count == 2


def test_what_came_with_the_request_or_was_made_is_no_input(kernels: Kernels) -> None:
    assert read_by(kernels, {"type": "values", "values": [1.0]}, fingerprint=True) is None
    assert read_by(kernels, {"type": "generate", "distribution": "normal", "n": 10}, fingerprint=True) is None


def test_an_object_is_hashed_too(root: Path) -> None:
    with web_server() as web:
        web.files["a.npy"] = (root / "a.npy").read_bytes()
        kernels = Kernels("cpu", "here:cpu", Folders((), root, Places((web.place(),))))
        read = read_by(kernels, {"type": "path", "path": web.url("a.npy")}, fingerprint=True)
        assert read.fingerprint == read.objects[0].sha256 == sha256(root / "a.npy")
        assert (read.count, read.files) == (1, ())
        assert read_by(kernels, {"type": "path", "path": web.url("a.npy")}).objects[0].sha256 is None


@pytest.mark.parametrize(
    "source",
    [
        {"type": "path", "path": "changing.npy"},
        {"type": "array", "path": "changing.npy"},
        {"type": "files", "paths": ["changing.npy", "b.npy"]},
        {"type": "table", "path": "changing.parquet"},
    ],
)
@pytest.mark.parametrize("fingerprint", [True, False])
def test_a_file_that_changes_while_it_is_read_fails_the_job(
    kernels: Kernels, root: Path, source: dict[str, Any], fingerprint: bool
) -> None:
    np.save(root / "changing.npy", NUMBERS)
    pyarrow.parquet.write_table(pyarrow.table({"x": NUMBERS}), root / "changing.parquet")
    path = root / str(source.get("path", "changing.npy"))

    def change(news: Any) -> None:
        if isinstance(news, Progress):
            with path.open("r+b") as file:
                file.seek(-8, 2)
                file.write(b"12345678")

    with pytest.raises(InvalidInput, match="changed while"):
        read_by(kernels, source, change, fingerprint=fingerprint)
    path.unlink()
