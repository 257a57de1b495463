"""Uploads in parts: bytes that arrived stay after every kind of cut, and come to the same dataset."""

import hashlib
import io
import os
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import numpy as np
import pytest

from tests.support.api import Api, running_api
from tests.support.waiting import until
from warpfold.app.datasets.partial import PartialUploads, UploadMetadata
from warpfold.app.datasets.store import Store
from warpfold.contract.upload_notes import is_finished_mark

MIB = 1 << 20
PREFIX = "/v1/uploads"


def npy(count: int, seed: int = 0) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, np.random.default_rng(seed).integers(0, 255, count, np.uint8))
    return buffer.getvalue()


SMALL = npy(20_000)
LARGE = npy(5 * MIB)


@pytest.fixture(scope="module")
def uploads(shared_api: Api, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    folder = tmp_path_factory.mktemp("datasets")
    limits = {"dataset_dir": folder, "max_dataset_bytes": 8 * MIB, "dataset_quota_bytes": 8 * MIB, "keep_free_bytes": 0}
    with running_api(shared_api.settings.model_copy(update=limits)) as running:
        yield running


@pytest.fixture
def http(uploads: Api) -> Iterator[httpx.Client]:
    client = uploads.client()
    yield client
    for upload in client.get(PREFIX).json()["items"]:
        client.delete(f"{PREFIX}/{upload['id']}")
    for held in client.get("/v1/datasets").json()["items"]:
        client.delete(f"/v1/datasets/{held['id']}")
    uploads.close_clients()


def begun(http: httpx.Client, length: int, **params: str) -> str:
    answer = http.post(PREFIX, params=params, headers={"Upload-Length": str(length), "Upload-Complete": "?0"})
    assert answer.status_code == 201, answer.text
    assert (answer.headers["Upload-Offset"], answer.headers["Upload-Complete"]) == ("0", "?0")
    return answer.headers["Location"]


def headers(offset: int, complete: bool) -> dict[str, str]:
    return {
        "Content-Type": "application/partial-upload",
        "Upload-Offset": str(offset),
        "Upload-Complete": f"?{complete:d}",
    }


def append(http: httpx.Client, path: str, offset: int, body: bytes, *, complete: bool = False) -> httpx.Response:
    return http.patch(path, content=body, headers=headers(offset, complete))


def offset(http: httpx.Client, path: str) -> int:
    answer = http.head(path)
    assert answer.status_code == 200
    assert answer.headers["Cache-Control"] == "no-store"
    return int(answer.headers["Upload-Offset"])


def files(api: Api) -> list[Path]:
    """All files but the marks of finished uploads."""
    every = api.settings.datasets_dir().rglob("*")
    return [path for path in every if path.is_file() and not is_finished_mark(path)]


@pytest.mark.parametrize("body", [SMALL, LARGE], ids=["through the loop", "by a thread"])
@pytest.mark.parametrize("cuts", [(), (5,), (10_100, 10_500), (19_999,)])
def test_parts_come_to_the_dataset_of_the_whole(
    uploads: Api, http: httpx.Client, body: bytes, cuts: tuple[int, ...]
) -> None:
    path = begun(http, len(body), name="in parts.npy")
    at = 0
    for cut in cuts:
        answer = append(http, path, at, body[at:cut])
        assert (answer.status_code, answer.headers["Upload-Offset"]) == (204, str(cut))
        assert offset(http, path) == cut
        at = cut
    ended = append(http, path, at, body[at:], complete=True)
    assert ended.status_code == 201
    assert ended.json()["id"] == hashlib.sha256(body).hexdigest()
    assert ended.json()["name"] == "in parts.npy"
    assert ended.headers["Upload-Complete"] == "?1"
    assert http.get(path).status_code == 404
    [file] = files(uploads)
    assert file.read_bytes() == body


def test_bare_elements_come_in_parts_too(http: httpx.Client) -> None:
    array = np.arange(100, dtype=np.float32)
    body, whole = array.tobytes(), io.BytesIO()
    np.save(whole, array)
    path = begun(http, len(body), dtype="float32")
    assert append(http, path, 0, body[:7]).status_code == 204
    ended = append(http, path, 7, body[7:], complete=True)
    assert ended.json()["id"] == hashlib.sha256(whole.getvalue()).hexdigest()


def test_all_that_came_before_a_cut_stays(uploads: Api, http: httpx.Client) -> None:
    path = begun(http, len(LARGE))
    address = urlsplit(uploads.url)
    lines = {**headers(0, True), "Host": "x", "Authorization": f"Bearer {uploads.tokens['ann']}"}
    head = f"PATCH {path} HTTP/1.1\r\nContent-Length: {len(LARGE)}\r\n"
    head += "".join(f"{name}: {value}\r\n" for name, value in lines.items()) + "\r\n"
    with socket.create_connection((address.hostname, address.port)) as wire:
        wire.sendall(head.encode() + LARGE[: 3 * MIB + 17])
    until(lambda: offset(http, path) == 3 * MIB + 17)
    ended = append(http, path, 3 * MIB + 17, LARGE[3 * MIB + 17 :], complete=True)
    assert ended.json()["id"] == hashlib.sha256(LARGE).hexdigest()


def test_a_later_request_takes_over_from_one_that_waits(uploads: Api, http: httpx.Client) -> None:
    for body in (SMALL, LARGE):
        path = begun(http, len(body))
        address = urlsplit(uploads.url)
        lines = {**headers(0, True), "Host": "x", "Authorization": f"Bearer {uploads.tokens['ann']}"}
        head = f"PATCH {path} HTTP/1.1\r\nContent-Length: {len(body)}\r\n"
        head += "".join(f"{name}: {value}\r\n" for name, value in lines.items()) + "\r\n"
        with socket.create_connection((address.hostname, address.port)) as wire:
            wire.sendall(head.encode() + body[:10_000])
            half = MIB + 10_000
            wire.sendall(body[10_000:half]) if len(body) > half else None
            [note] = (each for each in files(uploads) if each.parent.name == "partial")
            until(lambda: note.read_bytes()[42:58].strip())  # noqa: B023, PLW0108 (called within the round)
            # A client that goes on from an older position is told the position of now.
            answer = append(http, path, 0, body, complete=True)
            assert answer.status_code == 409
            at = int(answer.headers["Upload-Offset"])
            assert answer.json()["expected-offset"] == at
            assert answer.json()["provided-offset"] == 0
            assert wire.recv(12) == b"HTTP/1.1 409"
            assert append(http, path, at, body[at:], complete=True).status_code == 201


def test_what_can_never_become_an_array_is_removed(uploads: Api, http: httpx.Client) -> None:
    for length, body, message in (
        (10, b"1234567890", "not a whole .npy file"),
        (len(SMALL) + 1, SMALL + b"x", "promises"),
        (len(SMALL) - 1, SMALL, "more bytes than"),
        (0, b"", "empty"),
    ):
        path = begun(http, length)
        refused = append(http, path, 0, body, complete=True)
        assert refused.status_code == 422
        assert message in refused.json()["detail"]
        assert http.get(path).status_code == 404
    assert files(uploads) == []
    path = begun(http, len(SMALL))
    assert append(http, path, 0, SMALL[:-1], complete=True).status_code == 422


def test_requests_that_do_not_fit_are_refused_and_change_nothing(http: httpx.Client) -> None:
    path = begun(http, len(SMALL))
    assert append(http, path, 0, SMALL[:100]).status_code == 204
    plain = {**headers(100, False), "Content-Type": "text/plain"}
    assert http.patch(path, content=b"x", headers=plain).status_code == 415
    assert append(http, path, 99, b"x").status_code == 409
    for left_out in ("Upload-Offset", "Upload-Complete"):
        sent = {name: value for name, value in headers(100, False).items() if name != left_out}
        assert http.patch(path, content=b"x", headers=sent).json()["errors"][0]["field"] == left_out.lower()
    assert http.post(PREFIX).json()["errors"][0]["field"] == "upload-length"
    answer = http.post(PREFIX, headers={"Upload-Length": "5", "Upload-Complete": "?1"})
    assert answer.json()["errors"][0]["field"] == "Upload-Complete"
    assert offset(http, path) == 100


def test_an_unfinished_upload_counts_whole_towards_the_quota_until_it_is_given_up(http: httpx.Client) -> None:
    path = begun(http, len(LARGE))
    refused = http.post(PREFIX, headers={"Upload-Length": str(len(LARGE))})
    assert refused.status_code == 413
    assert "uploads in progress" in refused.json()["detail"]
    assert http.post("/v1/datasets", content=LARGE).status_code == 413
    assert [upload["id"] for upload in http.get(PREFIX).json()["items"]] == [path.rpartition("/")[2]]
    assert http.delete(path).status_code == 204
    assert http.delete(path).status_code == 404
    assert http.post("/v1/datasets", content=LARGE).status_code == 201
    assert http.post(PREFIX, headers={"Upload-Length": str(9 * MIB)}).status_code == 413


def test_an_upload_is_its_owners_alone(uploads: Api, http: httpx.Client) -> None:
    path = begun(http, len(SMALL))
    for other in (uploads.client("bob"), uploads.client("root")):
        assert other.get(path).status_code == 404
        assert append(other, path, 0, SMALL, complete=True).status_code == 404
        assert other.delete(path).status_code == 404
        assert other.get(PREFIX).json() == {"items": []}


def test_an_upload_to_which_nothing_is_added_is_removed_when_its_time_is_over(tmp_path: Path) -> None:
    store = Store(tmp_path)
    upload = store.partial.new(7)
    upload.create(UploadMetadata(name="", dtype=None, length=MIB, lives_s=600))
    os.truncate(upload.path, MIB)
    assert store.remove_abandoned(0.0) == 0, "nobody writes it, and it may be resumed"
    assert store.arriving(7).owned == MIB
    os.utime(upload.path, (0, 0))
    assert upload.metadata() is None
    os.utime(tmp_path / "partial" / upload.path.name, (0, 0))
    assert store.arriving(7).owned == 0
    assert not upload.path.exists()
    assert store.partial.names() == set()


def test_after_another_start_of_the_machine_only_what_was_flushed_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    uploads = PartialUploads(tmp_path / "notes", tmp_path / "files")
    upload = uploads.new(7)
    upload.create(UploadMetadata(name="", dtype=None, length=MIB, lives_s=600))
    with upload.writing() as writing:
        writing.note(1000, flushed=True)
        writing.note(3000, flushed=False)
    assert upload.offset() == 3000
    monkeypatch.setattr("warpfold.contract.upload_notes.boot", lambda: "another")
    assert upload.offset() == 1000
    with upload.writing() as writing:
        assert writing.offset == 1000
        writing.note(1500, flushed=False)
    assert upload.offset() == 1500


def test_only_its_sender_has_an_upload_reduced(uploads: Api, http: httpx.Client) -> None:
    path = http.post("/v1/uploads", headers={"Upload-Length": str(len(LARGE))}).headers["Location"]
    spec: dict[str, Any] = {"kind": "reduce", "source": {"type": "upload", "id": path.rpartition("/")[2]}}
    unknown = {"kind": "reduce", "source": {"type": "upload", "id": "0" * 32}}
    for client, named in ((uploads.client("bob"), spec), (http, unknown)):
        for route, body in (("/v1/jobs", named), ("/v1/batches", {"specs": [named]})):
            refused = client.post(route, json=body)
            assert refused.status_code == 422
            assert "no upload of yours" in refused.json()["errors"][0]["message"]
            assert refused.json()["errors"][0]["field"].endswith("source.id")
    accepted = http.post("/v1/jobs", json=spec)
    assert accepted.status_code == 202
    assert append(http, path, 0, LARGE, complete=True).status_code == 201
    assert http.post("/v1/jobs", json=spec).status_code == 202, "its mark is there for a while"
