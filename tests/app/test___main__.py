import asyncio
import signal
import time

import pytest
import uvicorn
from sse_starlette.sse import AppStatus
from typer.testing import CliRunner

from warpfold.app import logs
from warpfold.app.__main__ import Server, cli

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


def test_the_server_rests_between_requests_and_stops_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(AppStatus, "should_exit", False)  # streams of this process, which stays, would end as well

    async def answer(scope: object, receive: object, send: object) -> None:
        pytest.fail("nobody asks")

    server = Server(uvicorn.Config(answer, port=0, lifespan="off", log_config=None))
    ticks: list[int] = []
    tick = server.on_tick

    async def counted(counter: int) -> bool:
        ticks.append(counter)
        return await tick(counter)

    async def run() -> float:
        began = time.monotonic()
        serving = asyncio.create_task(server.main_loop())
        await asyncio.sleep(0.3)
        server.handle_exit(signal.SIGTERM, None)
        await asyncio.wait_for(serving, 30)
        return time.monotonic() - began

    server.on_tick = counted  # type: ignore[method-assign]
    took_s = asyncio.run(run())
    assert len(ticks) < took_s + 3
    assert {number % 10 for number in ticks} == {0}, "uvicorn makes the header Date at each tenth tick"


def test_without_a_database_the_command_says_which_setting_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WARPFOLD_DATABASE_URL", "")
    refused = CliRunner().invoke(cli)
    assert refused.exit_code == 2
    assert "WARPFOLD_DATABASE_URL" in refused.stderr
