"""`python -m warpfold.app` runs one api process, on uvicorn."""

import asyncio
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from types import FrameType
from typing import Annotated, Any

import typer
import uvicorn
from fastapi import FastAPI
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

from warpfold.app import logs
from warpfold.app.config import load_settings
from warpfold.app.http.context import Context
from warpfold.app.main import create_app
from warpfold.app.server.connections import Connections
from warpfold.app.server.descriptors import raise_limit
from warpfold.app.server.protocol import Guarded

_PATIENCE_S = 1
"""How long held requests and streams may go on after the process was asked to stop; their clients ask again."""

_IDLE_S = 150
"""How long an idle connection stays open: longer than proxies keep theirs (Caddy two minutes, nginx and balancers
one). A request may be on its way while its connection is closed, and a submission that meets that is a 502."""

_TICK_S = 1.0
"""How often the header Date is made anew."""
_UVICORNS_TICKS = 10  # in a second

cli = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)


@cli.command()
def api(
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port to listen on.", min=0, max=65535)] = 8080,
    forwarded_allow_ips: Annotated[
        str, typer.Option(help="Proxies whose X-Forwarded-… headers are believed, or *.")
    ] = "127.0.0.1",
) -> None:
    """Run one api process until SIGTERM. Several may run, each on an address of its own, behind a balancer."""
    logs.configure(role="api")
    try:
        application = create_app(load_settings())
    except ValueError as error:
        typer.echo(f"warpfold api: {error}", err=True)
        sys.exit(2)
    server = Server(server_config(application, host=host, port=port, forwarded_allow_ips=forwarded_allow_ips))
    server.run()
    if not server.started:
        sys.exit(1)


class Server(uvicorn.Server):
    """uvicorn's server, which wakes up once a second and when it is asked to stop: ten times a second took a fifth of
    what an idle service takes of the processor."""

    _wake: Callable[[], object] | None = None

    async def main_loop(self) -> None:
        asked = asyncio.Event()
        self._wake = partial(asyncio.get_running_loop().call_soon_threadsafe, asked.set)
        ticks = 0
        while not await self.on_tick(ticks) and not self.should_exit:
            ticks += _UVICORNS_TICKS
            with suppress(TimeoutError):
                async with asyncio.timeout(_TICK_S):
                    await asked.wait()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        super().handle_exit(sig, frame)
        if self._wake is not None:
            self._wake()


def server_config(
    app: FastAPI, *, host: str = "127.0.0.1", port: int = 0, forwarded_allow_ips: str = "127.0.0.1"
) -> uvicorn.Config:
    """Settings of uvicorn to serve `app` on `host` and `port` (0 takes a free port), behind the proxies that
    `forwarded_allow_ips` names.

    Raises this process's limit of open files as far as it may.
    """
    context: Context = app.state.context
    connections = Connections(context.settings, context.metrics.connections, raise_limit(), _IDLE_S)
    proxies = ProxyHeadersMiddleware(app, forwarded_allow_ips).trusted_hosts  # type: ignore[arg-type]
    http: Any = partial(Guarded, connections=connections, proxies=proxies)
    return uvicorn.Config(
        app,
        host=host,
        port=port,
        http=http,
        ws="none",
        log_config=None,  # app.logs configures logging
        access_log=False,
        forwarded_allow_ips=forwarded_allow_ips,
        timeout_graceful_shutdown=_PATIENCE_S,
        timeout_keep_alive=_IDLE_S,
    )


def main() -> None:
    """The command `warpfold api`."""
    cli(prog_name="warpfold api")


if __name__ == "__main__":
    main()
