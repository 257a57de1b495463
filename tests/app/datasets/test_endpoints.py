"""Uploads as people send them, and as they go wrong."""

import hashlib
import io
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray

from tests.support.api import Api, running_api
from tests.support.waiting import until
from warpfold.app.config import Settings

LIMIT = 100_000


def npy(array: NDArray[Any] | np.generic) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, array)
    return buffer.getvalue()


ARRAY = np.arange(12, dtype=np.float32).reshape(3, 4)
FILE = npy(ARRAY)


@pytest.fixture(scope="module")
def uploads(shared_api: Api, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    """An api with a folder of its own and small limits."""
    folder = tmp_path_factory.mktemp("datasets")
    limits = {"dataset_dir": folder, "max_dataset_bytes": LIMIT, "dataset_quota_bytes": 2 * LIMIT}
    with running_api(shared_api.settings.model_copy(update=limits)) as running:
        yield running


@pytest.fixture
def folder(uploads: Api) -> Iterator[Path]:
    yield uploads.settings.datasets_dir()
    http = uploads.client("root")
    for held in http.get("/v1/datasets").json()["items"]:
        http.delete(f"/v1/datasets/{held['id']}")
    uploads.close_clients()


@pytest.fixture
def http(uploads: Api, folder: Path) -> httpx.Client:
    return uploads.client()


def files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


def test_a_npy_file_is_kept_under_its_hash(http: httpx.Client, folder: Path) -> None:
    answer = http.post("/v1/datasets", content=FILE, params={"name": "a.npy"})
    assert answer.status_code == 201
    kept = answer.json()
    assert kept["id"] == hashlib.sha256(FILE).hexdigest()
    assert answer.headers["Location"] == f"/v1/datasets/{kept['id']}"
    assert [kept[name] for name in ("owner", "name", "dtype", "shape", "count", "bytes")] == [
        *("ann", "a.npy", "float32", [3, 4], 12, len(FILE)),
    ]
    assert http.get(answer.headers["Location"]).json() == kept
    [file] = files(folder)
    assert file.read_bytes() == FILE
    assert file.name == f"{kept['id']}.npy"


def test_bare_elements_become_the_file_that_numpy_would_write(http: httpx.Client, folder: Path) -> None:
    flat = ARRAY.reshape(-1)
    answer = http.post("/v1/datasets", content=flat.tobytes(), params={"dtype": "float32"})
    assert answer.status_code == 201
    assert answer.json()["id"] == hashlib.sha256(npy(flat)).hexdigest()
    [file] = files(folder)
    assert np.load(file).tolist() == flat.tolist()


def test_bfloat16_comes_as_bare_elements(http: httpx.Client) -> None:
    ones = np.ones(4, dtype=ml_dtypes.bfloat16)
    refused = http.post("/v1/datasets", content=npy(ones))
    assert refused.status_code == 422
    assert "as NumPy does with bfloat16" in refused.json()["detail"]
    kept = http.post("/v1/datasets", content=ones.tobytes(), params={"dtype": "bfloat16"}).json()
    assert (kept["dtype"], kept["shape"]) == ("bfloat16", [4])


def test_the_same_array_again_is_the_same_dataset(http: httpx.Client, folder: Path) -> None:
    first = http.post("/v1/datasets", content=FILE, params={"name": "first"})
    again = http.post("/v1/datasets", content=FILE, params={"name": "second"})
    assert (first.status_code, again.status_code) == (201, 200)
    assert again.json()["id"] == first.json()["id"]
    assert again.json()["name"] == "second"
    assert len(files(folder)) == 1
    assert len(http.get("/v1/datasets").json()["items"]) == 1


def test_uploads_of_one_array_that_race_make_one_file(http: httpx.Client, folder: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: http.post("/v1/datasets", content=FILE), range(16)))
    assert sorted(answer.status_code for answer in answers) == [200] * 15 + [201]
    assert len(files(folder)) == 1


def test_a_stream_without_a_length_is_taken(http: httpx.Client) -> None:
    pieces = (FILE[start : start + 50] for start in range(0, len(FILE), 50))
    answer = http.post("/v1/datasets", content=pieces)
    assert answer.json()["id"] == hashlib.sha256(FILE).hexdigest()


@pytest.mark.parametrize(
    ("content", "params", "status", "message"),
    [
        (b"", {}, 422, "the body is empty"),
        (b"1,2,3\n", {}, 422, "not a whole .npy file"),
        (FILE[:40], {}, 422, "not a whole .npy file"),
        (FILE[:-1], {}, 422, "truncated"),
        (FILE + b"more", {}, 422, "truncated or has something behind its data"),
        (npy(np.array(["a"])), {}, 422, "dtype <U1 cannot be reduced"),
        (npy(np.array(["text"])), {}, 422, "cannot be reduced"),
        (npy(np.float64(1)), {}, 422, "a single value"),
        (b"1234567", {"dtype": "float32"}, 422, "7 bytes are not a whole number of float32 elements of 4 bytes"),
        (FILE, {"dtype": "float31"}, 422, "unknown dtype 'float31'"),
        (FILE, {"name": "x" * 129}, 422, "name"),
        (bytes(LIMIT + 1), {}, 413, f"at most {LIMIT} bytes"),
    ],
)
def test_what_cannot_be_kept_is_refused_and_leaves_nothing(
    *, http: httpx.Client, folder: Path, content: bytes, params: dict[str, str], status: int, message: str
) -> None:
    answer = http.post("/v1/datasets", content=content, params=params)
    assert answer.status_code == status
    assert message in answer.json()["detail"]
    assert files(folder) == []


@pytest.mark.parametrize(
    ("content", "params", "status", "message"),
    [
        (FILE[:-1], {}, 422, f"{len(FILE)} bytes were announced, {len(FILE) - 1} arrived"),
        (FILE + b"more", {}, 422, "more bytes than the head"),
        (npy(np.zeros(2 * LIMIT, np.uint8)), {}, 413, f"at most {LIMIT} bytes"),
        (b"12345678", {"dtype": "float32"}, 422, "Content-Length"),
    ],
)
def test_a_stream_is_judged_as_it_comes(
    *, http: httpx.Client, folder: Path, content: bytes, params: dict[str, str], status: int, message: str
) -> None:
    answer = http.post("/v1/datasets", content=iter([content[:1000], content[1000:]]), params=params)
    assert answer.status_code == status
    assert message in answer.json()["detail"]
    assert files(folder) == []


def test_a_sender_who_hangs_up_leaves_nothing(uploads: Api, folder: Path) -> None:
    address = urlsplit(uploads.url)
    with socket.create_connection((address.hostname, address.port)) as wire:
        wire.sendall(
            b"POST /v1/datasets HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nContent-Length: %d\r\n\r\n"
            % (uploads.tokens["ann"].encode(), len(FILE))
        )
        wire.sendall(FILE[:-10])
        until(lambda: files(folder), describe=lambda: "the upload did not begin")
        [incoming] = files(folder)
        assert incoming.parent.name == "incoming"
    until(lambda: not files(folder), describe=lambda: "something was left behind")
    assert uploads.client().get("/v1/datasets").json()["items"] == []


def test_a_quota_bounds_what_one_user_holds(uploads: Api, folder: Path) -> None:
    ann, bob = uploads.client("ann"), uploads.client("bob")
    parts = [npy(np.full(LIMIT - 200, fill, np.uint8)) for fill in range(3)]
    kept = [ann.post("/v1/datasets", content=part) for part in parts]
    assert [answer.status_code for answer in kept] == [201, 201, 413]
    assert "more than your quota" in kept[2].json()["detail"]
    assert len(files(folder)) == 2
    assert ann.post("/v1/datasets", content=parts[0]).status_code == 200
    assert bob.post("/v1/datasets", content=parts[2]).status_code == 201
    ann.delete(f"/v1/datasets/{kept[0].json()['id']}")
    assert ann.post("/v1/datasets", content=parts[2]).status_code == 201


def test_the_file_goes_with_its_last_owner(uploads: Api, folder: Path) -> None:
    ann, bob = uploads.client("ann"), uploads.client("bob")
    path = ann.post("/v1/datasets", content=FILE).headers["Location"]
    assert bob.post("/v1/datasets", content=FILE).status_code == 201
    assert bob.get(path).json()["owner"] == "bob"
    assert ann.delete(path).status_code == 204
    assert ann.get(path).status_code == 404
    assert len(files(folder)) == 1
    assert bob.put(f"{path}/sharing", json={"users": ["ann"]}).json() == {"everyone": False, "users": ["ann"]}
    assert ann.get(path).json()["owner"] == "bob"
    forbidden = ann.delete(path)
    assert forbidden.status_code == 403
    assert "belongs to bob" in forbidden.json()["detail"]
    assert bob.delete(path).status_code == 204
    assert bob.get(path).status_code == 404
    assert bob.delete(path).status_code == 404
    assert files(folder) == []


def test_an_admin_deletes_for_everybody(uploads: Api, folder: Path) -> None:
    path = uploads.client("ann").post("/v1/datasets", content=FILE).headers["Location"]
    uploads.client("bob").post("/v1/datasets", content=FILE)
    assert uploads.client("root").delete(path).status_code == 204
    assert uploads.client("ann").get(path).status_code == 404
    assert files(folder) == []


def test_pages_are_newest_first_and_cut_by_key(uploads: Api, folder: Path) -> None:
    ann = uploads.client("ann")
    ids = [ann.post("/v1/datasets", content=npy(np.arange(n))).json()["id"] for n in range(1, 6)]
    uploads.client("bob").post("/v1/datasets", content=FILE)
    seen: list[str] = []
    cursor: str | None = None
    while True:
        start = {"cursor": cursor} if cursor else {}
        page = ann.get("/v1/datasets", params={"owner": "ann", "limit": "2", **start}).json()
        seen += [item["id"] for item in page["items"]]
        if (cursor := page["next_cursor"]) is None:
            break
    assert seen == ids[::-1]


def test_uploading_needs_a_token(uploads: Api, folder: Path) -> None:
    assert httpx.post(f"{uploads.url}/v1/datasets", content=FILE).status_code == 401
    assert files(folder) == []


def test_a_job_may_name_only_a_dataset_that_is_there(uploads: Api, http: httpx.Client) -> None:
    kept = http.post("/v1/datasets", content=FILE).json()
    spec = {"kind": "reduce", "op": "dot"}
    present, gone = ({"type": "dataset", "id": dataset_id} for dataset_id in (kept["id"], "0" * 64))
    assert http.post("/v1/jobs", json={**spec, "source": present, "other": present}).status_code == 202
    refused = http.post("/v1/jobs", json={**spec, "source": present, "other": gone})
    assert refused.status_code == 422
    assert refused.json()["errors"] == [
        {"field": "other.id", "message": "there is no dataset with this id that you may read, or it was deleted"}
    ]
    assert len(http.get("/v1/jobs").json()["items"]) >= 1
    wrong = http.post("/v1/jobs", json={**spec, "source": {"type": "dataset", "id": "../../etc/passwd"}})
    assert wrong.json()["errors"][0]["field"] == "source.id"


def test_a_read_only_folder_is_said(settings: Settings, tmp_path: Path) -> None:
    blocked = tmp_path / "full"
    blocked.mkdir()
    (blocked / "incoming").symlink_to("/proc")  # no file can be made there
    with running_api(settings.model_copy(update={"dataset_dir": blocked})) as api:
        answer = api.client().post("/v1/datasets", content=FILE)
    assert answer.status_code == 503
    assert "cannot store" in answer.json()["detail"]
