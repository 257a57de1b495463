import shutil
import stat
from pathlib import Path

import pytest
import redis

from tests.support.servers import kill
from warpfold.worker.embedded import EmbeddedRedis, ServerMissing
from warpfold.worker.embedded import redis as module


@pytest.fixture
def server(tmp_path: Path) -> EmbeddedRedis:
    return EmbeddedRedis(tmp_path / "redis")


def test_it_answers_once_started_and_is_gone_once_stopped(server: EmbeddedRedis) -> None:
    assert server.start() == server.url
    with redis.Redis.from_url(server.url) as client:
        assert client.ping()
        server.stop()
        assert not server.is_running()
        with pytest.raises(redis.ConnectionError):
            client.ping()


def test_what_was_stored_survives_an_orderly_restart(server: EmbeddedRedis) -> None:
    server.start()
    try:
        with redis.Redis.from_url(server.url) as client:
            client.set("kept", "42")
            server.stop()
            server.start()
            assert client.get("kept") == b"42"
    finally:
        server.stop()


def test_it_comes_back_after_a_kill(server: EmbeddedRedis) -> None:
    server.start()
    try:
        kill(server)
        server.start()
        with redis.Redis.from_url(server.url) as client:
            assert client.ping()
    finally:
        server.stop()


def test_nothing_is_evicted_and_every_write_goes_to_the_log(server: EmbeddedRedis) -> None:
    server.start()
    try:
        with redis.Redis.from_url(server.url, decode_responses=True) as client:
            assert client.config_get("maxmemory-policy") == {"maxmemory-policy": "noeviction"}
            assert client.config_get("appendonly") == {"appendonly": "yes"}
            assert client.config_get("aof-use-rdb-preamble") == {"aof-use-rdb-preamble": "no"}
    finally:
        server.stop()


def test_another_process_of_ours_takes_a_running_server_over(server: EmbeddedRedis, tmp_path: Path) -> None:
    server.start()
    heir = EmbeddedRedis(tmp_path / "redis")
    assert heir.pid == server.pid
    heir.stop()
    assert not server.is_running()


def test_nobody_else_may_connect(server: EmbeddedRedis, tmp_path: Path) -> None:
    server.start()
    try:
        mode = (tmp_path / "redis" / "redis.sock").stat().st_mode
        assert not mode & (stat.S_IRWXG | stat.S_IRWXO)
        with redis.Redis.from_url(server.url, decode_responses=True) as client:
            assert client.config_get("port") == {"port": "0"}
    finally:
        server.stop()


def test_a_missing_program_is_named_with_its_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None)
    monkeypatch.setattr(module, "find_spec", lambda name: None)
    with pytest.raises(ServerMissing, match="put a redis-server or valkey-server on PATH"):
        module.redis_program()


def test_a_valkey_on_the_path_is_preferred_to_the_wheel(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: "/opt/valkey-server" if name == "valkey-server" else None)
    assert module.redis_program() == Path("/opt/valkey-server")


def test_without_a_program_on_the_path_the_wheel_has_one_for_every_python(
    server: EmbeddedRedis, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None)
    assert "site-packages" in module.redis_program().parts
    server.start()
    try:
        with redis.Redis.from_url(server.url) as client:
            assert client.eval("return 6 * 7", 0) == 42, "queues run scripts"
    finally:
        server.stop()
