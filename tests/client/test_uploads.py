"""Uploads by the client: nothing is sent or read for nothing, a cut loses nothing, and no file is taken for another."""

import asyncio
import hashlib
import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import numpy as np
import pytest

from tests.support.cutting import cutting
from tests.support.service import Service
from tests.support.waiting import until
from warpfold.client.api import Client
from warpfold.client.async_api import AsyncClient
from warpfold.client.contents import FileContent
from warpfold.client.errors import WarpfoldError
from warpfold.client.sent_files import FileStamp, SentFiles
from warpfold.client.uploads import content_of

MIB = 1 << 20
DIGEST = "0" * 63 + "1"


def npy(path: Path, mebibytes: int, seed: int, more: int = 0) -> Path:
    """A file that nobody else sends, and that was modified long enough ago to be remembered. It has `more` bytes."""
    np.save(path, np.random.default_rng([seed, time.time_ns()]).integers(0, 255, mebibytes * MIB + more, np.uint8))
    return path


def aged(path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The same a minute later."""
    now = time.time_ns
    monkeypatch.setattr("warpfold.client.sent_files.time.time_ns", lambda: now() + 60_000_000_000)
    return path


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


@contextmanager
def counted(client: Client) -> Iterator[list[tuple[str, str, int]]]:
    """The method, the path and the length of the body of each request of the client."""
    requests: list[tuple[str, str, int]] = []

    def note(request: httpx.Request) -> None:
        requests.append((request.method, request.url.path, int(request.headers.get("Content-Length", 0))))

    client._http.event_hooks["request"] = [note]
    yield requests
    client._http.event_hooks["request"] = []


def test_a_file_that_was_sent_is_recognised_without_being_read(
    client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = aged(npy(tmp_path / "a.npy", 9, 1), monkeypatch)
    first = client.upload(path)
    assert first.id == digest(path)
    monkeypatch.setattr(FileContent, "pieces", lambda *_: pytest.fail("the file was read"))
    with counted(client) as requests:
        assert client.upload(path).id == first.id
        assert client.submit_reduce(path, "max").spec["source"]["id"] == first.id
    assert [method for method, path, _ in requests if "jobs" not in path] == ["GET"] * 4
    client.delete_dataset(first.id)


def test_rehash_reads_the_file_and_does_not_send_it_again(
    client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = aged(npy(tmp_path / "a.npy", 9, 2), monkeypatch)
    kept = client.upload(path)
    SentFiles(tmp_path / ".cache" / "warpfold" / "sent-files.json").keep(FileStamp.now(path), digest=DIGEST)
    with counted(client) as requests:
        assert client.upload(path, rehash=True).id == kept.id
    assert all(length == 0 for *_, length in requests)
    with counted(client) as requests:
        assert client.upload(path).id == kept.id
    assert requests[0][1] == f"/v1/datasets/{kept.id}", "what was read replaces what was remembered"
    client.delete_dataset(kept.id)


@pytest.mark.parametrize("change", ["bytes", "inode", "times put back"])
def test_a_file_that_changed_is_another(
    client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    path = aged(npy(tmp_path / "a.npy", 9, 3), monkeypatch)
    kept = client.upload(path)
    before = path.stat()
    other = npy(tmp_path / "b.npy", 9, 4)
    if change == "inode":
        other.replace(path)
    else:
        path.write_bytes(other.read_bytes())
    if change != "bytes":
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    changed = client.upload(path)
    assert changed.id == digest(path) != kept.id
    for dataset in (kept, changed):
        client.delete_dataset(dataset.id)


def test_a_file_that_was_modified_just_now_is_not_remembered(tmp_path: Path) -> None:
    memory, path = SentFiles(tmp_path / "memory"), tmp_path / "a"
    path.write_bytes(b"1")
    memory.keep(FileStamp.now(path), digest=DIGEST)
    assert not (tmp_path / "memory").exists()


@pytest.mark.parametrize("damage", [b"", b"{", b"\xff\xff", b'{"files": {"a": 1}}', b'{"files": []}'])
def test_a_damaged_memory_is_no_memory_and_is_made_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, damage: bytes
) -> None:
    memory, path = SentFiles(tmp_path / "sub" / "memory"), aged(tmp_path / "a", monkeypatch)
    path.write_bytes(b"1")
    seen = FileStamp.now(path)
    memory.keep(seen, digest=DIGEST)
    kept = memory.recall(seen)
    assert kept is not None
    assert kept.digest == DIGEST
    whole = (tmp_path / "sub" / "memory").read_text()
    for text in (damage, whole.replace(DIGEST, "not a digest").encode(), whole[:-20].encode()):
        (tmp_path / "sub" / "memory").write_bytes(text)
        assert memory.recall(seen) is None
    memory.keep(seen, digest=DIGEST)
    assert memory.recall(seen) == kept
    assert json.loads((tmp_path / "sub" / "memory").read_text())["files"].keys() == {str(path)}
    SentFiles(Path(os.devnull) / "memory").keep(seen, digest=DIGEST)  # nowhere to write is no error


def test_an_upload_that_is_cut_goes_on_where_it_stood(service: Service, tmp_path: Path) -> None:
    path = npy(tmp_path / "a.npy", 12, 5)
    with cutting(service, 5 * MIB, 3 * MIB) as url, Client(url, service.token) as client:
        with counted(client) as requests:
            kept = client.upload(path)
        assert kept.id == digest(path)
        client.delete_dataset(kept.id)
    sent = [length for method, _, length in requests if method == "PATCH"]
    assert len(sent) == 3
    assert sent[0] == path.stat().st_size
    assert sent[0] - 5 * MIB <= sent[1] < sent[0] - 4 * MIB
    assert sent[1] - 3 * MIB <= sent[2] < sent[1] - 2 * MIB


def test_the_asynchronous_client_goes_on_too(service: Service, tmp_path: Path) -> None:
    path = npy(tmp_path / "a.npy", 9, 6)

    async def upload(url: str) -> str:
        async with AsyncClient(url, service.token) as client:
            kept = await client.upload(path)
            await client.delete_dataset(kept.id)
            return kept.id

    with cutting(service, 5 * MIB) as url:
        assert asyncio.run(upload(url)) == digest(path)


def test_another_client_goes_on_with_what_was_cut(
    service: Service, client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Of a length that no other array of the service has: else the file is read for its digest before it is sent.
    path = aged(npy(tmp_path / "a.npy", 9, 7, more=4321), monkeypatch)
    pieces = FileContent.pieces

    def broken(self: FileContent, start: int = 0) -> Iterator[bytes | memoryview]:
        for number, piece in enumerate(pieces(self, start)):
            if number == 20:
                raise KeyboardInterrupt
            yield piece

    with monkeypatch.context() as patch, service.client() as first:
        patch.setattr(FileContent, "pieces", broken)
        with pytest.raises(KeyboardInterrupt):
            first.upload(path)
        begun = FileContent(path).unfinished()
        assert begun is not None
        # What the first client sent may still lie in the socket.
        until(lambda: int(first._http.head(begun).headers["Upload-Offset"]) > 2 * MIB)
    with counted(client) as requests:
        kept = client.upload(path)
    assert kept.id == digest(path)
    # The server may refuse the first one: it may not have noticed yet that the other client is gone.
    *_, sent = [length for method, _, length in requests if method == "PATCH"]
    assert sent < path.stat().st_size - 2 * MIB
    client.delete_dataset(kept.id)


def test_a_file_that_changes_while_it_is_sent_is_no_dataset(
    client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = npy(tmp_path / "a.npy", 9, 8)
    pieces = FileContent.pieces

    def changing(self: FileContent, start: int = 0) -> Iterator[bytes | memoryview]:
        for number, piece in enumerate(pieces(self, start)):
            if number == 20:
                with path.open("r+b") as file:
                    file.seek(-1, os.SEEK_END)
                    file.write(b"!")
            yield piece

    monkeypatch.setattr(FileContent, "pieces", changing)
    held = client.datasets()
    with pytest.raises(WarpfoldError, match="changed while it was read"):
        client.upload(path)
    assert client.datasets() == held


def test_a_copy_of_a_file_is_not_sent_again(client: Client, tmp_path: Path) -> None:
    path = npy(tmp_path / "a.npy", 9, 9)
    kept = client.upload(path)
    (tmp_path / "b.npy").write_bytes(path.read_bytes())
    with counted(client) as requests:
        assert client.upload(tmp_path / "b.npy").id == kept.id
    assert all(length == 0 for *_, length in requests)
    client.delete_dataset(kept.id)


def test_a_folder_is_refused_with_what_to_do_instead(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match=r"is a folder: pass an array of a Zarr hierarchy as zarr\.open"):
        content_of(tmp_path, None)
