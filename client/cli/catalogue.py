"""Commands about what can be asked for and who is there: ops, strategies, presets, devices, workers."""

import typer

from warpfold.client.cli import output
from warpfold.client.cli.output import Json
from warpfold.client.cli.session import service

_PANEL = "Catalogue"


def register(app: typer.Typer) -> None:
    """Add the commands to `app`."""
    for command in (ops, strategies, presets, devices, workers):
        app.command(rich_help_panel=_PANEL)(command)


def ops(context: typer.Context, as_json: Json = False) -> None:
    """List the reductions."""
    with service(context) as client:
        found = client.ops()
    if as_json:
        output.lines(found)
    else:
        rows = ([op.name, op.summary, op.results.get("float32"), op.results.get("int32")] for op in found)
        output.table(("op", "computes", "of float32", "of int32"), rows, fold="computes")


def strategies(context: typer.Context, as_json: Json = False) -> None:
    """List the ways to reduce."""
    with service(context) as client:
        found = client.strategies()
    if as_json:
        output.lines(found)
    else:
        rows = ([one.name, one.backend, len(one.computes), one.summary] for one in found)
        output.table(("strategy", "backend", "ops", "how"), rows, right=("ops",), fold="how")


def presets(context: typer.Context, as_json: Json = False) -> None:
    """List the studies that `warpfold run` knows."""
    with service(context) as client:
        found = client.presets()
    if as_json:
        output.lines(found)
    else:
        rows = ([one.name, one.jobs, one.title] for one in found)
        output.table(("preset", "jobs", "title"), rows, right=("jobs",), fold="title")


def devices(context: typer.Context, as_json: Json = False) -> None:
    """List the devices that workers hold."""
    with service(context) as client:
        found = client.devices()
    if as_json:
        output.lines(found)
        return
    output.table(
        ("host", "device", "memory", "cores", "live", "workers"),
        (
            [
                *(one.host, one.device["name"], f"{one.device['memory_bytes'] / 2**30:.1f} GiB", one.device["cores"]),
                *("yes" if one.live else "no", " ".join(one.workers)),
            ]
            for one in found
        ),
        right=("memory", "cores"),
        fold="device",
    )


def workers(context: typer.Context, as_json: Json = False) -> None:
    """List the workers and what each is doing."""
    with service(context) as client:
        found = client.workers()
    if as_json:
        output.lines(found)
    else:
        rows = ([one.id, one.state, one.job_id and one.job_id[:8], one.device, one.version] for one in found)
        output.table(("worker", "state", "job", "device", "version"), rows, fold="device")
