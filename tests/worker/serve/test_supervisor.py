import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis

from tests.support.servers import kill
from tests.support.waiting import until
from warpfold.worker.embedded import EmbeddedRedis
from warpfold.worker.serve.bootstrap import Servers
from warpfold.worker.serve.hangs import HangDetector
from warpfold.worker.serve.supervisor import keep_alive
from warpfold.worker.stop import Stop


@pytest.fixture
def server(tmp_path: Path) -> Iterator[EmbeddedRedis]:
    server = EmbeddedRedis(tmp_path / "redis")
    server.start()
    yield server
    server.stop()


def test_a_server_that_cannot_be_started_is_tried_again_until_it_can(server: EmbeddedRedis, tmp_path: Path) -> None:
    with redis.Redis.from_url(server.url) as client:
        client.set("kept", "42")
    log, kept = tmp_path / "redis" / "redis.log", next((tmp_path / "redis").rglob("*.incr.aof"))
    whole = kept.read_bytes()
    kill(server)
    kept.write_bytes(b"?" + whole)
    before = log.stat().st_size
    stop = Stop()
    keeper = threading.Thread(
        target=keep_alive,
        args=([], Servers("", server.url, None, server), stop, HangDetector("http://127.0.0.1:9"), 1 << 20),
    )
    keeper.start()
    try:
        until(lambda: log.read_bytes()[before:].count(b"Bad file format") >= 2)
        kept.write_bytes(whole)
        until(server.is_running)
        with redis.Redis.from_url(server.url) as client:
            until(lambda: answer(client) == b"42")
    finally:
        stop.request()
        keeper.join()
        stop.close()


def answer(client: redis.Redis) -> object:
    try:
        return client.get("kept")
    except redis.RedisError:
        return None
