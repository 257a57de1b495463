"""Uploads that never end, race for a quota or for the last of a disk: what is on its way counts, and goes again."""

import fcntl
import hashlib
import io
import os
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import numpy as np
import pytest

from tests.support import processes
from tests.support.api import Api, running_api
from tests.support.waiting import until
from warpfold.app.auth.access_tokens import create_token
from warpfold.app.config import Settings
from warpfold.app.datasets.store import Store
from warpfold.app.db import BlockingDatabase

MIB = 1 << 20
QUOTA = 5 * MIB


def npy(mebibytes: int, fill: int = 0) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, np.full(mebibytes * MIB, fill, np.uint8))
    return buffer.getvalue()


@pytest.fixture
def small(settings: Settings) -> Settings:
    return settings.model_copy(update={"dataset_quota_bytes": QUOTA, "keep_free_bytes": 0})


@contextmanager
def begun(api: Api, user: str, body: bytes, chunked: bool = False) -> Iterator[socket.socket]:
    """An upload of which all but the last bytes were sent, and which stays like that."""
    address = urlsplit(api.url)
    length = "Transfer-Encoding: chunked" if chunked else f"Content-Length: {len(body)}"
    head = f"POST /v1/datasets HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {api.tokens[user]}\r\n{length}\r\n\r\n"
    sent = body[:-100]
    with socket.create_connection((address.hostname, address.port), timeout=60) as wire:
        wire.sendall(head.encode() + (f"{len(sent):x}\r\n".encode() + sent + b"\r\n" if chunked else sent))
        yield wire


def was_refused(wire: socket.socket) -> bool:
    wire.settimeout(0.01)
    try:
        return wire.recv(12) == b"HTTP/1.1 413"
    except TimeoutError:
        return False
    except OSError:  # ended while we were still sending
        return True


def arriving(api: Api) -> list[Path]:
    return list((api.settings.datasets_dir() / "incoming").glob("*"))


def on_disk(api: Api) -> int:
    return sum(path.stat().st_size for path in api.settings.datasets_dir().rglob("*") if path.is_file())


@pytest.mark.parametrize("chunked", [False, True])
def test_forty_open_uploads_of_one_user_stay_within_the_quota(small: Settings, chunked: bool) -> None:
    with running_api(small) as api, ExitStack() as open_:
        wires = [open_.enter_context(begun(api, "ann", npy(2, fill), chunked)) for fill in range(40)]
        # Two of 2 MiB fit into 5; what does not is refused at once, not after its last byte.
        refused: set[int] = set()

        def refusals() -> int:
            for number, wire in enumerate(wires):
                if number not in refused and was_refused(wire):
                    refused.add(number)
            return len(refused)

        until(lambda: refusals() >= 38)
        until(lambda: len(arriving(api)) <= 2)
        assert on_disk(api) <= QUOTA
        # Another user is not concerned.
        assert api.client("bob").post("/v1/datasets", content=npy(4, 99)).status_code == 201
    assert arriving(api) == []


def test_what_is_on_its_way_counts_and_counts_no_more_when_it_ends(small: Settings) -> None:
    with running_api(small) as api:
        ann = api.client("ann")
        with begun(api, "ann", npy(4, 1)):
            until(lambda: on_disk(api) > 4 * MIB)
            refused = ann.post("/v1/datasets", content=npy(2, 2))
            assert refused.status_code == 413
            assert "uploads in progress" in refused.json()["detail"]
            assert refused.headers["content-type"] == "application/problem+json"
        until(lambda: arriving(api) == [])
        assert ann.post("/v1/datasets", content=npy(4, 2)).status_code == 201
        # An array that is held already takes no more room.
        assert ann.post("/v1/datasets", content=npy(4, 2)).status_code == 200
        assert ann.post("/v1/datasets", content=npy(4, 3)).status_code == 413


def test_a_stalled_upload_ends_and_gives_its_bytes_back(small: Settings) -> None:
    with running_api(small.model_copy(update={"body_timeout_s": 1.0})) as api, begun(api, "ann", npy(4, 1)) as wire:
        until(lambda: on_disk(api) > 4 * MIB)
        assert wire.recv(12) == b"HTTP/1.1 408"
        until(lambda: arriving(api) == [])
        assert api.client("ann").post("/v1/datasets", content=npy(4, 2)).status_code == 201


def test_what_a_killed_api_left_goes_with_the_next_upload_and_what_is_written_stays(small: Settings) -> None:
    with running_api(small) as api:
        ann = api.client("ann")
        owner = Store(small.datasets_dir())
        with begun(api, "ann", npy(1, 1)):
            until(lambda: on_disk(api) > MIB)
            [written] = arriving(api)
            left = written.with_name(f"{written.name.partition('-')[0]}-left")
            left.write_bytes(bytes(4 * MIB))  # nobody holds its lock
            long_ago = time.time() - 60
            os.utime(written, (long_ago, long_ago))
            assert ann.post("/v1/datasets", content=npy(2, 2)).status_code == 201
            assert not left.exists()
            assert written.exists()
            assert owner.remove_abandoned(3600.0) == 0
            with written.open("r+b") as file, pytest.raises(BlockingIOError):
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


def test_the_room_that_postgres_needs_is_kept(settings: Settings) -> None:
    settings.datasets_dir().mkdir(parents=True)
    disk = os.statvfs(settings.datasets_dir())
    everything = disk.f_blocks * disk.f_frsize
    with running_api(settings.model_copy(update={"keep_free_bytes": everything})) as api:
        refused = api.client().post("/v1/datasets", content=npy(1))
        assert refused.status_code == 507
        assert refused.headers["content-type"] == "application/problem+json"
        assert refused.json()["type"] == "urn:warpfold:insufficient-storage"
        assert arriving(api) == []
        # All else goes on.
        assert api.submit()


def test_what_other_uploads_are_yet_to_take_counts_as_taken(settings: Settings, tmp_path: Path) -> None:
    store = Store(tmp_path / "datasets")
    with store.incoming(1) as first, store.incoming(2) as second:
        first.truncate(3 * MIB)
        second.truncate(5 * MIB)
        assert (store.arriving(1).owned, store.arriving(2).owned, store.arriving(3).owned) == (3 * MIB, 5 * MIB, 0)
        assert store.arriving(3).unwritten == 8 * MIB
        first.write(b"x" * 3 * MIB)
        first.flush()
        os.fsync(first.fileno())
        assert store.arriving(3).unwritten == 5 * MIB
    assert store.arriving(3).unwritten == 0


def test_a_disk_that_is_full_is_said(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    with running_api(settings) as api:
        monkeypatch.setattr(Store, "free_bytes", lambda self: 0)
        refused = api.client().post("/v1/datasets", content=npy(1))
    assert refused.status_code == 507
    assert "has no room" in refused.json()["detail"]


def test_a_head_that_promises_more_than_is_ever_taken_is_refused_at_once(settings: Settings) -> None:
    with running_api(settings.model_copy(update={"max_dataset_bytes": MIB})) as api:
        head = npy(2)[:200]
        refused = api.client().post("/v1/datasets", content=iter([head]))
    assert refused.status_code == 413
    assert f"at most {MIB} bytes" in refused.json()["detail"]


def test_an_upload_in_parts_survives_kill_9_of_the_api_to_the_last_byte_that_was_written(
    settings: Settings, tmp_path: Path
) -> None:
    body, cut = npy(6, 7), 4 * MIB + 4321
    database = BlockingDatabase(settings.database_url, application="test")
    token = database.run(create_token, "ann")
    database.close()
    port = processes.free_port()
    http = httpx.Client(base_url=f"http://127.0.0.1:{port}", headers={"Authorization": f"Bearer {token}"}, timeout=60)
    append = {"Content-Type": "application/partial-upload", "Upload-Complete": "?1"}

    def start() -> processes.Process:
        process = processes.start(settings, tmp_path / "log", "warpfold.app", "--port", str(port))
        until(lambda: processes.is_ready(http), 120, describe=lambda: (tmp_path / "log").read_text()[-2000:])
        return process

    def written() -> int:
        return int(http.head(path).headers["Upload-Offset"])

    api = start()
    try:
        path = http.post("/v1/uploads", headers={"Upload-Length": str(len(body))}).headers["Location"]
        with socket.create_connection(("127.0.0.1", port), timeout=60) as wire:
            lines = {**append, "Upload-Offset": "0", "Host": "x", "Content-Length": str(len(body))}
            lines["Authorization"] = f"Bearer {token}"
            head = f"PATCH {path} HTTP/1.1\r\n" + "".join(f"{name}: {value}\r\n" for name, value in lines.items())
            wire.sendall(head.encode() + b"\r\n" + body[:cut])
            until(lambda: written() == 4 * MIB)  # of what came, only the piece that is not yet full is lost
            api.kill()
            api.wait()
        api = start()
        assert written() == 4 * MIB
        rest = http.patch(path, content=body[4 * MIB :], headers={**append, "Upload-Offset": str(4 * MIB)})
        assert rest.status_code == 201
        assert rest.json()["id"] == hashlib.sha256(body).hexdigest()
        assert http.get("/v1/uploads").json() == {"items": []}
    finally:
        http.close()
        processes.end([api])
