"""An upload whose api is killed: nothing of it is ever taken for an array, and what lies about is swept up."""

import io
import os
import signal
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

import httpx
import numpy as np

from tests.support import processes
from tests.support.waiting import until
from warpfold.app.auth.access_tokens import create_token
from warpfold.app.config import Settings
from warpfold.app.datasets.store import Store
from warpfold.app.datasets.sweep import tidy
from warpfold.app.db import BlockingDatabase


@contextmanager
def api_process(settings: Settings, log: Path) -> Iterator[tuple[processes.Process, int]]:
    """An api in a process of its own, and its port."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    process = processes.start(settings, log, "warpfold.app", "--port", str(port))
    try:
        give_up = time.monotonic() + 120
        while True:
            try:
                assert httpx.get(f"http://127.0.0.1:{port}/healthz").status_code == 200
                break
            except httpx.TransportError:
                assert time.monotonic() < give_up, log.read_text()[-3000:]
                time.sleep(0.05)
        yield process, port
    finally:
        processes.end([process])


def test_an_api_that_is_killed_in_the_middle_of_an_upload_keeps_nothing_of_it(
    settings: Settings, database: BlockingDatabase, tmp_path: Path
) -> None:
    token = database.run(create_token, "ann")
    buffer = io.BytesIO()
    np.save(buffer, np.arange(1_000_000.0))
    file = buffer.getvalue()
    headers = {"Authorization": f"Bearer {token}"}
    incoming = settings.datasets_dir() / "incoming"
    with (
        api_process(settings, tmp_path / "log") as (process, port),
        socket.create_connection(("127.0.0.1", port)) as wire,
    ):
        wire.sendall(
            b"POST /v1/datasets HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nContent-Length: %d\r\n\r\n"
            % (token.encode(), len(file))
        )
        wire.sendall(file[: len(file) // 2])
        until(
            lambda: sum(path.stat().st_size for path in incoming.glob("*")) >= 2 << 20,
            describe=lambda: "the upload did not begin",
        )
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
    [half] = list(incoming.iterdir())
    long_ago = time.time() - 7200
    os.utime(half, (long_ago, long_ago))
    with api_process(settings, tmp_path / "log") as (_, port):
        url = f"http://127.0.0.1:{port}/v1/datasets"
        assert httpx.get(url, headers=headers, timeout=60).json()["items"] == []
        kept = httpx.post(url, headers=headers, content=file, timeout=60)
        assert kept.status_code == 201
    store = Store(settings.datasets_dir())
    assert store.path(kept.json()["id"]).read_bytes() == file
    assert not half.exists(), "the next upload sweeps up what nobody writes any more"
    tidy(database, store, timedelta(days=1))
    assert store.path(kept.json()["id"]).exists()
