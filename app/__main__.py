"""`python -m warpfold.app`: one api process."""

import sys
from typing import Annotated

import typer
import uvicorn

from warpfold.app import logs
from warpfold.app.config import load_settings
from warpfold.app.main import create_app
from warpfold.app.server.listening import server_config

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
    server = uvicorn.Server(server_config(application, host=host, port=port, forwarded_allow_ips=forwarded_allow_ips))
    server.run()
    if not server.started:
        sys.exit(1)


if __name__ == "__main__":
    cli(prog_name="warpfold api")
