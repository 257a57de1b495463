"""Commands about what can be asked for and who is there: ops, strategies, presets, devices, workers."""

import typer

from warpfold.client.catalogue import Rates
from warpfold.client.cli import output
from warpfold.client.cli.output import Json
from warpfold.client.cli.session import service

_PANEL = "Catalogue"
_SPEEDS = ("read GB/s", "copy GB/s", "reduce GB/s")


def register(app: typer.Typer) -> None:
    """Add the commands to `app`."""
    for command in (ops, strategies, presets, devices, workers):
        app.command(rich_help_panel=_PANEL)(command)


def ops(context: typer.Context, as_json: Json = False) -> None:
    """List the reductions."""
    with service(context) as client:
        ops = client.ops()
    if as_json:
        output.lines(ops)
    else:
        rows = ([op.name, op.summary, op.results.get("float32"), op.results.get("int32")] for op in ops)
        output.table(("op", "computes", "of float32", "of int32"), rows, fold="computes")


def strategies(context: typer.Context, as_json: Json = False) -> None:
    """List the ways to reduce."""
    with service(context) as client:
        strategies = client.strategies()
    if as_json:
        output.lines(strategies)
    else:
        rows = ([strategy.name, strategy.backend, len(strategy.computes), strategy.summary] for strategy in strategies)
        output.table(("strategy", "backend", "ops", "how"), rows, right=("ops",), fold="how")


def presets(context: typer.Context, as_json: Json = False) -> None:
    """List the studies that `warpfold run` knows."""
    with service(context) as client:
        presets = client.presets()
    if as_json:
        output.lines(presets)
    else:
        rows = ([preset.name, preset.jobs, preset.title] for preset in presets)
        output.table(("preset", "jobs", "title"), rows, right=("jobs",), fold="title")


def devices(context: typer.Context, as_json: Json = False) -> None:
    """List the devices that workers hold."""
    with service(context) as client:
        devices = client.devices()
    if as_json:
        output.lines(devices)
        return
    output.table(
        ("host", "device", "memory", "cores", *_SPEEDS, "live", "workers"),
        (
            [
                *(
                    device.host,
                    device.device["name"],
                    f"{device.device['memory_bytes'] / 2**30:.1f} GiB",
                    device.device["cores"],
                ),
                *_speeds(device.rates),
                *("yes" if device.live else "no", " ".join(device.workers)),
            ]
            for device in devices
        ),
        right=("memory", "cores", *_SPEEDS),
        fold="device",
    )


def _speeds(rates: Rates | None) -> list[str]:
    speeds = (None,) * 3 if rates is None else (rates.read_gb_per_s, rates.copy_gb_per_s, rates.reduce_gb_per_s)
    return ["–" if speed is None else f"{speed:.0f}" if speed >= 100 else f"{speed:.3g}" for speed in speeds]


def workers(context: typer.Context, as_json: Json = False) -> None:
    """List the workers and what each is doing."""
    with service(context) as client:
        workers = client.workers()
    if as_json:
        output.lines(workers)
    else:
        rows = (
            [worker.id, worker.state, worker.job_id and worker.job_id[:8], worker.device, worker.version]
            for worker in workers
        )
        output.table(("worker", "state", "job", "device", "version"), rows, fold="device")
