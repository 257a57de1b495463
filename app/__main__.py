"""`python -m warpfold.app`: one api process."""

import sys
from typing import Annotated

import typer
import uvicorn

from warpfold.app import logs
from warpfold.app.config import load_settings
from warpfold.app.main import create_app

_PATIENCE_S = 1
"""For requests that are held and streams, when asked to stop: clients come back by themselves."""

_IDLE_S = 150
"""How long an idle connection stays open: longer than proxies keep theirs (Caddy two minutes, nginx and balancers one).
Who closes first may meet the next request on its way, and a submission that meets that is a 502."""

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
    uvicorn.run(
        application,
        host=host,
        port=port,
        log_config=None,  # ours
        access_log=False,
        ws="none",
        forwarded_allow_ips=forwarded_allow_ips,
        timeout_graceful_shutdown=_PATIENCE_S,
        timeout_keep_alive=_IDLE_S,
    )


if __name__ == "__main__":
    cli(prog_name="warpfold api")
