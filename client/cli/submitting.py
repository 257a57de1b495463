"""Commands that hand in jobs: submit, run."""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
import yaml

from warpfold.client.api import Client
from warpfold.client.cli import batches, output
from warpfold.client.cli.backends import Backend, Partitions
from warpfold.client.cli.counts import count_option
from warpfold.client.cli.files import DASH, is_pattern
from warpfold.client.cli.jobs import show_job
from warpfold.client.cli.output import Json
from warpfold.client.cli.session import Timeout, check_ended_well, service, wait_for
from warpfold.client.cli.spec_files import Entry, entries, is_array, naming_places, number_or_text, read_yaml
from warpfold.client.live_batches import LiveBatch
from warpfold.client.live_jobs import LiveJob

_PANEL = "Jobs"
_SUBMIT_EXAMPLES = """Examples:

warpfold submit --op mean --generate normal --n 1000000 --seed 42 --wait

warpfold submit --values '1e8 1 -1e8' --dtype float32 --wait

warpfold submit job.yaml --set priority=high

warpfold submit specs.jsonl --wait

warpfold submit 'runs/*.npy' --op max --wait

warpfold submit jobs/*.yaml --tag sweep:june

warpfold submit --kind benchmark --set 'strategies=[exact, numpy]' --set 'sizes=[1000, 1000000]'"""

Set = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="FIELD=VALUE", help="Any field of the spec, dotted; the value as YAML."),
]
Tags = Annotated[list[str] | None, typer.Option("--tag", metavar="NAME:VALUE", help="To find the job by.")]
Key = Annotated[str | None, typer.Option(help="Idempotency key: the same command again gives the same job.")]
Webhook = Annotated[
    str | None,
    typer.Option(
        metavar="URL",
        help="The service tells this address when the job or the batch has ended, signed by your secret.",
    ),
]
Wait = Annotated[bool, typer.Option("--wait", "-w", help="Wait for the end, and show the result.")]


def register(app: typer.Typer) -> None:
    """Add the commands to `app`."""
    app.command(rich_help_panel=_PANEL, epilog=_SUBMIT_EXAMPLES)(submit)
    app.command(rich_help_panel=_PANEL, epilog="Example: warpfold run p05-task1 --wait")(run)


def submit(
    context: typer.Context,
    files: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="FILE",
            help="A spec as JSON or YAML, or an array to reduce; - is a spec from standard input. Several files, a "
            "pattern ('runs/*.npy') and a .jsonl file, of which each line is a spec, are one batch.",
        ),
    ] = None,
    *,
    kind: Annotated[str | None, typer.Option(help="Of job.", show_default="reduce")] = None,
    op: Annotated[str | None, typer.Option(help="`warpfold ops` lists them.")] = None,
    strategy: Annotated[str | None, typer.Option(help="`warpfold strategies` lists them.")] = None,
    backend: Backend = None,
    partitions: Partitions = None,
    generate: Annotated[str | None, typer.Option(metavar="DISTRIBUTION", help="Elements to be made.")] = None,
    n: Annotated[int | None, count_option("How many elements to generate.", "--n")] = None,
    seed: Annotated[int | None, typer.Option(min=0, help="The seed of generated elements.")] = None,
    values: Annotated[str | None, typer.Option(help="Elements, apart by spaces or commas.")] = None,
    path: Annotated[str | None, typer.Option(help="A .npy file on the server.")] = None,
    dataset: Annotated[str | None, typer.Option(metavar="ID", help="An uploaded array.")] = None,
    dtype: Annotated[str | None, typer.Option(help="Of made or given elements.")] = None,
    priority: Annotated[str | None, typer.Option(help="low, normal or high.")] = None,
    time_limit: Annotated[float | None, typer.Option(min=0, metavar="SECONDS", help="The job may run so long.")] = None,
    tag: Tags = None,
    assign: Set = None,
    webhook: Webhook = None,
    key: Key = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the spec, and submit nothing.")] = False,
    wait: Wait = False,
    timeout: Timeout = None,
    as_json: Json = False,
) -> None:
    """Submit a job, from a file, from options, or from both: options win. Prints the job's id.

    A file that holds an array or a table is uploaded, once however often it is reduced. Several files, the files that
    fit a pattern, and the specs of a .jsonl file are one batch, of which all jobs are accepted or none; its id is
    printed. A webhook is then that of the batch.
    """
    options = {"kind": kind, "op": op, "strategy": strategy, "backend": backend, "partitions": partitions}
    options["priority"] = priority
    source = _source(generate=generate, n=n, seed=seed, values=values, path=path, dataset=dataset, dtype=dtype)

    def completed(read: dict[str, Any]) -> dict[str, Any]:
        spec = {"kind": "reduce"} | read
        spec |= {name: value for name, value in {**options, "timeout_s": time_limit}.items() if value is not None}
        if source:
            spec["source"] = {**spec.get("source", {}), **source} if "type" not in source else source
        _complete(spec, tag, assign)
        return spec

    receiver = None if webhook is None else {"url": webhook}
    if files and (len(files) > 1 or is_pattern(files[0]) or batches.is_file_of_lines(files[0])):
        listed = entries(files, _read, completed)
        if dry_run:
            output.lines(entry.shown() for entry in listed)
            return
        with service(context) as client:
            batch = _hand_in_together(client, listed, files, key, receiver)
            places = () if batches.is_file_of_lines(files[0]) and len(files) == 1 else [each.place for each in listed]
            _show_batch(batch, places, wait=wait, timeout=timeout, as_json=as_json)
        return
    if files and files[0] != DASH and is_array(files[0]):
        [entry] = entries(files, _read, completed)
    else:
        entry = Entry("", completed(_read(files[0]) if files else {}))
    if receiver is not None:
        entry.spec["webhook"] = {**(entry.spec.get("webhook") or {}), **receiver}
    if dry_run:
        output.document(entry.shown())
        return
    with service(context) as client:
        hand_in(client, entry.sent(client), key, wait=wait, timeout=timeout, as_json=as_json)


def run(
    context: typer.Context,
    preset: Annotated[str, typer.Argument(metavar="PRESET", help="`warpfold presets` lists them.")],
    *,
    assign: Set = None,
    tag: Tags = None,
    key: Key = None,
    wait: Wait = False,
    timeout: Timeout = None,
    as_json: Json = False,
) -> None:
    """Run a preset: a study that the service knows by name."""
    spec: dict[str, Any] = {"kind": "preset", "preset": preset}
    _complete(spec, tag, assign)
    with service(context) as client:
        hand_in(client, spec, key, wait=wait, timeout=timeout, as_json=as_json)


def hand_in(
    client: Client, spec: dict[str, Any], key: str | None, *, wait: bool, timeout: float | None, as_json: bool
) -> None:
    """Submit the job and print its id. With `wait`, wait for its end and print it."""
    job: LiveJob = client.submit(spec, key=key)
    if not wait:
        if as_json:
            output.document(job)
        else:
            typer.echo(job.id)
        return
    ended = wait_for(job, timeout)
    show_job(ended, as_json=as_json)
    check_ended_well(ended)


def _hand_in_together(
    client: Client, listed: Sequence[Entry], files: Sequence[str], key: str | None, receiver: Mapping[str, str] | None
) -> LiveBatch:
    """Submit all entries as one batch, which is named after the files."""
    specs = [entry.sent(client) for entry in listed]
    with naming_places(listed):
        name = " ".join(Path(file).name for file in files)[:128]
        return client.submit_many(specs, name=name, key=key, webhook=receiver)


def _show_batch(batch: LiveBatch, places: Sequence[str], *, wait: bool, timeout: float | None, as_json: bool) -> None:
    """Print the id. With `wait`, wait for the end and print the outcome of each job."""
    if not wait:
        if as_json:
            output.document(batch)
        else:
            typer.echo(batch.id)
        return
    ended = batches.wait_for(batch, timeout)
    batches.print_outcomes(ended.outcomes(), as_json=as_json, places=places)
    batches.check_ended_well(ended)


def _read(file: str) -> dict[str, Any]:
    try:
        text = sys.stdin.read() if file == "-" else Path(file).read_text()
        spec = read_yaml(text)
    except OSError as error:
        raise typer.BadParameter(f"{file}: {error.strerror}", param_hint="FILE") from None
    except yaml.constructor.ConstructorError as error:
        line = "" if error.problem_mark is None else f", line {error.problem_mark.line + 1}"
        raise typer.BadParameter(f"{file}{line}: {error.problem}", param_hint="FILE") from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise typer.BadParameter(f"{file} is neither JSON nor YAML: {error}", param_hint="FILE") from None
    if not isinstance(spec, dict):
        raise typer.BadParameter(f"{file} holds no spec: that is an object with a `kind`", param_hint="FILE")
    return spec


def _source(*, values: str | None, generate: str | None, path: str | None, dataset: str | None, **rest: Any) -> Any:
    """The `source` that options describe. It has no type where the options only change the source of a file."""
    made: dict[str, Any] = {name: value for name, value in rest.items() if value is not None}
    sources = {"--generate": generate, "--values": values, "--path": path, "--dataset": dataset}
    named = [name for name, value in sources.items() if value is not None]
    if len(named) > 1:
        raise typer.BadParameter(f"{' and '.join(named)} name different elements; choose one")
    if generate is not None:
        return {"type": "generate", "distribution": generate, **made}
    if values is not None:
        return {"type": "values", "values": [number_or_text(word) for word in values.replace(",", " ").split()], **made}
    if path is not None:
        return {"type": "path", "path": path}
    if dataset is not None:
        return {"type": "dataset", "id": dataset}
    return made


def _complete(spec: dict[str, Any], tags: list[str] | None, assign: list[str] | None) -> None:
    for tag in tags or ():
        name, _, value = tag.partition(":")
        spec.setdefault("tags", {})[name] = value
    for assignment in assign or ():
        name, equals, text = assignment.partition("=")
        if not equals or not name:
            raise typer.BadParameter(f"{assignment!r} is not FIELD=VALUE", param_hint="--set")
        *parents, last = name.split(".")
        inner = spec
        for parent in parents:
            inner = inner.setdefault(parent, {})
            if not isinstance(inner, dict):
                raise typer.BadParameter(f"{parent!r} is not an object", param_hint="--set")
        try:
            inner[last] = read_yaml(text)
        except yaml.YAMLError as error:
            raise typer.BadParameter(f"{assignment!r}: {error}", param_hint="--set") from None
