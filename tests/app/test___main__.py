import pytest
import uvicorn
from typer.testing import CliRunner

from warpfold.app import logs
from warpfold.app.__main__ import cli

CADDY_IDLE_S = 120  # of connections to what it stands before, by default


@pytest.fixture(autouse=True)
def logs_of_the_tests(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logs, "configure", lambda **_: None)


def test_idle_connections_are_left_to_the_proxy_to_close(monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[uvicorn.Config] = []

    def run(server: uvicorn.Server) -> None:
        ran.append(server.config)
        server.started = True

    monkeypatch.setattr(uvicorn.Server, "run", run)
    monkeypatch.setenv("WARPFOLD_DATABASE_URL", "postgresql://nobody@nowhere.invalid/x")
    assert CliRunner().invoke(cli, ["--port", "8081"]).exit_code == 0
    [config] = ran
    assert config.port == 8081
    assert config.timeout_keep_alive > CADDY_IDLE_S


def test_without_a_database_the_command_says_which_setting_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WARPFOLD_DATABASE_URL", "")
    refused = CliRunner().invoke(cli)
    assert refused.exit_code == 2
    assert "WARPFOLD_DATABASE_URL" in refused.stderr
