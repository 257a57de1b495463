"""Inspections of files over HTTP: what is in each format, what is refused, and files that break their parser."""

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import h5py
import httpx
import numpy as np
import psutil
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest
import zarr

from tests.support.api import Api, running_api
from tests.support.waiting import until

TABLE = pa.table({"region": ["EU", None, "US"], "price": pa.array([1, None, None], pa.int64()), "t": [0.5, 1.5, 2.5]})


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data root with a file of each format."""
    root = tmp_path_factory.mktemp("root").resolve()
    pq.write_table(TABLE, root / "sales.parquet", row_group_size=2)
    pyarrow.feather.write_feather(TABLE, root / "sales.arrow")
    (root / "sales.tsv").write_text("region\tprice\nEU\t1\n")
    (root / "table.dat").write_text("a;b\n1;2\n")
    np.savez_compressed(root / "ocean.npz", salt=np.ones((3, 4)), names=np.array(["a"]))
    np.save(root / "a.npy", np.zeros((2, 3), ">i2"))
    np.save(root / "b.npy", np.zeros(3))
    with h5py.File(root / "ocean.h5", "w") as file:
        file.create_dataset("run/salt", data=np.ones((6, 4), np.float32), chunks=(2, 4), compression="gzip")
        file.create_dataset("run/one", data=1.0)
    zarr.open_group(root / "ocean.zarr", mode="w").create_array("temp", shape=(9, 9), dtype="f8", chunks=(3, 9))
    os.mkfifo(root / "pipe")
    return root


@pytest.fixture(scope="module")
def looking(shared_api: Api, root: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    """An api that has the data root."""
    update = {"data_roots": (root,), "dataset_dir": tmp_path_factory.mktemp("datasets")}
    with running_api(shared_api.settings.model_copy(update=update)) as running:
        yield running


@pytest.fixture
def http(looking: Api) -> Iterator[httpx.Client]:
    yield looking.client()
    looking.close_clients()


def asked(http: httpx.Client, source: dict[str, Any], **more: Any) -> httpx.Response:
    return http.post("/v1/sources/inspect", json={"source": source, **more})


def looked(http: httpx.Client, source: dict[str, Any]) -> dict[str, Any]:
    answer = asked(http, source)
    assert answer.status_code == 200, answer.text
    body: dict[str, Any] = answer.json()
    return body


def contents(inspection: dict[str, Any]) -> list[tuple[Any, ...]]:
    """Name, dtype in a job, shape, nulls and chunks of each."""
    return [
        tuple(content[name] for name in ("name", "reduced_as", "shape", "nulls", "chunks"))
        for content in inspection["contents"]
    ]


def fault(answer: httpx.Response) -> tuple[str, str]:
    assert answer.status_code == 422, answer.text
    error = answer.json()["errors"][0]
    return error["field"], error["message"]


def test_the_columns_of_a_table_are_named_with_what_its_metadata_know(http: httpx.Client, root: Path) -> None:
    inspection = looked(http, {"type": "table", "path": "sales.parquet", "column": "no matter"})
    assert (inspection["file"], inspection["files"], inspection["format"], inspection["holds"]) == (
        "sales.parquet",
        1,
        "Parquet",
        "columns",
    )
    assert (inspection["rows"], inspection["left_out"]) == (3, 0)
    assert inspection["bytes"] == (root / "sales.parquet").stat().st_size
    assert contents(inspection) == [
        ("region", None, [3], 1, [2]),
        ("price", "int64", [3], 2, [2]),
        ("t", "float64", [3], 0, [2]),
    ]
    assert all(0 < content["bytes"] < inspection["bytes"] for content in inspection["contents"])
    arrow = looked(http, {"type": "table", "path": "sales.arrow"})
    assert (arrow["format"], arrow["rows"], contents(arrow)[1]) == ("Arrow", 3, ("price", "int64", [3], None, None))
    text = looked(http, {"type": "table", "path": "sales.tsv"})
    assert (text["format"], text["rows"], contents(text)[1]) == ("text", None, ("price", "int64", None, None, None))


def test_the_arrays_of_a_file_or_a_folder_are_named_with_their_shapes(http: httpx.Client) -> None:
    assert contents(looked(http, {"type": "path", "path": "a.npy"})) == [("", "int16", [2, 3], None, None)]
    archive = looked(http, {"type": "array", "path": "ocean.npz"})
    assert (archive["holds"], archive["rows"]) == ("arrays", None)
    assert ("salt", "float64", [3, 4], None, None) in contents(archive)
    hdf5 = looked(http, {"type": "array", "path": "ocean.h5"})
    assert contents(hdf5) == [("run/salt", "float32", [6, 4], None, [2, 4])]
    assert 0 < hdf5["contents"][0]["bytes"] < hdf5["bytes"]
    folder = looked(http, {"type": "array", "path": "ocean.zarr"})
    assert (folder["format"], folder["bytes"]) == ("Zarr", None)
    assert contents(folder) == [("temp", "float64", [9, 9], None, [3, 9])]


def test_of_many_files_the_first_is_looked_into_and_all_are_counted(http: httpx.Client) -> None:
    inspection = looked(http, {"type": "files", "glob": "*.npy"})
    assert (inspection["file"], inspection["files"]) == ("a.npy", 2)
    assert looked(http, {"type": "files", "paths": ["b.npy", "a.npy"]})["contents"][0]["reduced_as"] == "float64"


def test_an_upload_is_looked_into_by_its_id(http: httpx.Client, root: Path) -> None:
    kept = http.post("/v1/datasets", content=(root / "sales.parquet").read_bytes()).json()["id"]
    assert looked(http, {"type": "dataset", "id": kept})["rows"] == 3
    text = http.post("/v1/datasets", params={"name": "x.tsv"}, content=b"a\tb\n1\t2\n").json()["id"]
    columns = looked(http, {"type": "dataset", "id": text, "text": "tsv"})["contents"]
    assert [column["name"] for column in columns] == ["a", "b"]
    field, message = fault(asked(http, {"type": "dataset", "id": "0" * 64}))
    assert (field, "that you may read" in message) == ("source.id", True)


@pytest.mark.parametrize(
    ("source", "field", "words"),
    [
        ({"type": "table", "path": "no.parquet"}, "source.path", "'no.parquet' cannot be read: no such file"),
        ({"type": "table", "path": "../x"}, "source.path", "'..' is not allowed"),
        ({"type": "array", "path": "/etc/hostname"}, "source.path", "outside of this server's data roots"),
        ({"type": "array", "path": "pipe"}, "source.path", "is not a regular file"),
        ({"type": "array", "path": "cut.parquet"}, "source.path", "is not a whole Parquet file"),
        ({"type": "array", "path": "cut.h5"}, "source.path", "is not a whole HDF5 file"),
        ({"type": "table", "path": "table.dat"}, "source.path", "is in none of the formats that can be read"),
        ({"type": "files", "glob": "*.zip"}, "source.glob", "matches no file"),
        ({"type": "files"}, "source", "needs paths or uploads, or a glob"),
        ({"type": "values", "values": [1]}, "source", "should be one of 'path', 'dataset'"),
    ],
)
def test_what_is_wrong_is_named_by_its_field(
    http: httpx.Client, root: Path, source: dict[str, Any], field: str, words: str
) -> None:
    for name in ("sales.parquet", "ocean.h5"):
        whole = (root / name).read_bytes()
        (root / f"cut.{name.rpartition('.')[2]}").write_bytes(whole[:-9])
    at, message = fault(asked(http, source))
    assert words in message, message
    assert at.startswith(field)


def inspector() -> psutil.Process | None:
    """The process that forks a child for each look."""
    for process in psutil.Process().children():
        with suppress(psutil.Error):  # another child has ended, and nobody has asked how
            if "warpfold.app.inspection.inspector" in process.cmdline():
                return process
    return None


def test_a_look_that_takes_too_long_or_too_much_memory_ends_alone(http: httpx.Client, root: Path) -> None:
    looked(http, {"type": "path", "path": "a.npy"})
    before = inspector()
    assert before is not None
    # Where the system gives the inspector no turn for so long, it may find that a look has ended by itself.
    faults = [fault(asked(http, {"type": "files", "glob": "**/*"}, timeout_s=1e-4)) for _ in range(8)]
    assert any(field == "timeout_s" and "took longer than 0.0001 s" in message for field, message in faults), faults
    with (root / "wide.csv").open("wb") as file:  # a first line that has no end
        file.truncate(3 << 30)
    answer = asked(http, {"type": "table", "path": "wide.csv"}, timeout_s=60)
    assert fault(answer)[0].startswith("source")
    assert looked(http, {"type": "path", "path": "a.npy"})["files"] == 1
    assert inspector() == before


def test_looks_go_on_after_the_process_that_does_them_was_killed(http: httpx.Client) -> None:
    looked(http, {"type": "path", "path": "a.npy"})
    process = inspector()
    assert process is not None
    process.kill()
    assert looked(http, {"type": "path", "path": "a.npy"})["files"] == 1


def test_a_user_has_two_looks_under_way_and_no_more(looking: Api) -> None:
    looked(looking.client(), {"type": "path", "path": "a.npy"})
    process = inspector()
    assert process is not None
    process.send_signal(signal.SIGSTOP)  # no look gets on
    answers: list[httpx.Response] = []

    def ask() -> None:
        answers.append(asked(looking.client(), {"type": "path", "path": "a.npy"}))

    asking = [threading.Thread(target=ask) for _ in range(3)]
    try:
        for thread in asking:
            thread.start()
        until(lambda: bool(answers))
        assert (answers[0].status_code, "Retry-After" in answers[0].headers) == (429, True)
    finally:
        process.send_signal(signal.SIGCONT)
    for thread in asking:
        thread.join(60)
    assert sorted(answer.status_code for answer in answers) == [200, 200, 429]
    looking.close_clients()
