import stat
from pathlib import Path

import psycopg
import pytest

from tests.support.servers import folder, kill, restart
from warpfold.worker.embedded import EmbeddedPostgres


def test_it_answers_once_started_and_is_gone_once_stopped() -> None:
    with folder() as path:
        server = EmbeddedPostgres(path / "pg")
        assert not server.is_running()
        assert server.start() == server.url
        with psycopg.connect(server.url) as connection:
            assert connection.info.server_version >= 180000
        server.stop()
        assert not server.is_running()
        with pytest.raises(psycopg.OperationalError):
            psycopg.connect(server.url)


def test_the_folders_above_it_are_not_opened_for_reading() -> None:
    with folder() as path:
        above = path / "above"
        above.mkdir(mode=0o700)
        server = EmbeddedPostgres(above / "pg")
        server.start()
        try:
            assert stat.S_IMODE(above.stat().st_mode) & ~0o011 == 0o700
        finally:
            server.stop()


def test_what_was_committed_survives_kill_and_restart_at_the_same_address() -> None:
    with folder() as path:
        server = EmbeddedPostgres(path / "pg")
        server.start()
        try:
            with psycopg.connect(server.url) as connection:
                connection.execute("create table kept as select 42 as answer")
            kill(server)
            assert server.start() == server.url
            restart(server)
            with psycopg.connect(server.url) as connection:
                assert connection.execute("select answer from kept").fetchall() == [(42,)]
        finally:
            server.stop()


def test_another_process_of_ours_takes_a_running_server_over() -> None:
    with folder() as path:
        server = EmbeddedPostgres(path / "pg")
        server.start()
        try:
            heir = EmbeddedPostgres(path / "pg")
            assert heir.pid == server.pid
            assert heir.start() == server.url
            assert heir.pid == server.pid
        finally:
            heir.stop()
        assert not server.is_running()


def test_settings_reach_the_server_also_when_they_change_later() -> None:
    with folder() as path:
        for value in ("7", "9"):
            server = EmbeddedPostgres(path / "pg", {"max_connections": value, "superuser_reserved_connections": "1",
                                                    "max_wal_senders": "0"})  # fmt: skip
            server.start()
            try:
                with psycopg.connect(server.url) as connection:
                    assert connection.execute("show max_connections").fetchall() == [(value,)]
            finally:
                server.stop()


def test_a_deep_folder_gets_a_short_socket_path() -> None:
    with folder() as path:
        deep = path / ("d" * 90) / "pg"
        deep.parent.mkdir()
        server = EmbeddedPostgres(deep)
        server.start()
        try:
            psycopg.connect(server.url).close()
        finally:
            server.stop()


def test_a_folder_that_holds_something_else_is_an_error(tmp_path: Path) -> None:
    with folder() as path:
        (path / "pg").mkdir()
        (path / "pg" / "PG_VERSION").write_text("18\n")
        (path / "pg" / "postgresql.conf").write_text("")
        with pytest.raises(RuntimeError, match="log"):
            EmbeddedPostgres(path / "pg").start()
