"""Commands about batches: batches list, show, wait, cancel, results; and files of specs, of which each line is one."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, BinaryIO

import typer

from warpfold.client.api import Client
from warpfold.client.batches import MOST_JOBS, SPEC_FIELD, Batch, JobOutcome
from warpfold.client.cli import output
from warpfold.client.cli.counts import Limit
from warpfold.client.cli.exits import Exit, fail
from warpfold.client.cli.output import Json
from warpfold.client.cli.session import Timeout, service
from warpfold.client.job_results import ReduceResult
from warpfold.client.live_batches import LiveBatch
from warpfold.client.progress import state_of_batch
from warpfold.contract.id_beginning import is_beginning
from warpfold.contract.json_text import read_json
from warpfold.kernels.errors import InvalidInput

_ID_LENGTH = 36
_SEARCHED = 1000

BatchId = Annotated[str, typer.Argument(metavar="ID", help="Of a batch, or as much of its beginning as is unique.")]


def register(app: typer.Typer) -> None:
    """Add the group to `app`."""
    group = typer.Typer(help="Follow, wait for, cancel and read batches of jobs.", no_args_is_help=True)
    group.command("list")(show_all)
    group.command()(show)
    group.command(epilog="Example: warpfold batches wait $(warpfold submit specs.jsonl) --timeout 600")(wait)
    group.command()(cancel)
    group.command(epilog="Example: warpfold batches results 5f0c --parquet results.parquet")(results)
    app.add_typer(group, name="batches", rich_help_panel="Jobs")


def show_all(
    context: typer.Context,
    *,
    owner: Annotated[str | None, typer.Option(help="Whose.", show_default="your own")] = None,
    limit: Limit = 20,
    as_json: Json = False,
) -> None:
    """List batches, newest first."""
    with service(context) as client:
        listed = client.batches(owner=owner, limit=limit)
    if as_json:
        output.lines(listed)
        return
    rows = (
        [
            batch.id[:8],
            batch.name,
            batch.owner,
            f"{batch.created_at.astimezone():%m-%d %H:%M:%S}",
            state_of_batch(batch),
        ]
        for batch in listed
    )
    output.table(("id", "name", "owner", "submitted", "status"), rows, fold="name")


def show(context: typer.Context, batch_id: BatchId, as_json: Json = False) -> None:
    """Show a batch with the counts of its jobs."""
    with service(context) as client:
        _show(_find(client, batch_id), as_json=as_json)


def wait(context: typer.Context, batch_id: BatchId, timeout: Timeout = None, as_json: Json = False) -> None:
    """Wait until all jobs have ended. Exit code 0 if all succeeded, 1 if not, 5 after the timeout."""
    with service(context) as client:
        batch = wait_for(_find(client, batch_id), timeout)
        _show(batch, as_json=as_json)
        check_ended_well(batch)


def cancel(context: typer.Context, batch_id: BatchId, as_json: Json = False) -> None:
    """Ask for the end of all jobs. Running ones end within about a second."""
    with service(context) as client:
        batch = _find(client, batch_id).cancel()
        if as_json:
            output.document(batch)
        else:
            output.say(f"{batch.id} {'cancelled' if batch.ended else 'is being cancelled'}")


def results(
    context: typer.Context,
    batch_id: BatchId,
    *,
    parquet: Annotated[Path | None, typer.Option(metavar="FILE", help="Write a Parquet file.")] = None,
    as_json: Json = False,
) -> None:
    """Print what became of each job, in the order of the specs; jobs that have not ended are there, too."""
    with service(context) as client:
        batch = _find(client, batch_id)
        if parquet is not None:
            parquet.write_bytes(batch.parquet())
            output.say(f"wrote {parquet}")
            return
        print_outcomes(batch.outcomes(), as_json=as_json)


def print_outcomes(outcomes: list[JobOutcome], *, as_json: bool, places: Sequence[str] = ()) -> None:
    """Print a row, or a line of JSON, for each job; with the file that it came from, if there are `places`."""
    if as_json:
        named = ({"file": places[each.index], **each.model_dump(mode="json")} for each in outcomes if places)
        output.lines(named if places else outcomes)
        return
    heads = ("index", "job", "kind", "status", "value", "error")
    rows = ([each.index, each.id[:8], each.kind, each.status, _value(each), each.error] for each in outcomes)
    if places:
        heads = ("file", *heads[1:])
        rows = ([place, *row[1:]] for place, row in zip(places, rows, strict=True))
    output.table(heads, rows, right=("index", "value"), fold="error")


def wait_for(batch: LiveBatch, timeout_s: float | None) -> LiveBatch:
    """Wait for the end of a batch, with a bar where there is a terminal. Ctrl-C ends the command, not the batch."""
    try:
        return batch.wait(timeout_s=timeout_s)
    except KeyboardInterrupt:
        raise fail(f"the batch goes on; `warpfold batches cancel {batch.id}` ends it", Exit.INTERRUPTED) from None


def check_ended_well(batch: Batch) -> None:
    """End the command with code 1 if a job did not succeed."""
    if not batch.succeeded:
        raise fail(f"batch {batch.id} {state_of_batch(batch)}", Exit.FAILED)


def is_file_of_lines(file: str | None) -> bool:
    """Whether each line of a file is a spec, as its name tells."""
    return file is not None and Path(file).suffix in (".jsonl", ".ndjson")


def read_specs(file: str, complete: Callable[[dict[str, Any]], dict[str, Any]]) -> list[tuple[int, dict[str, Any]]]:
    """The specs in a file of JSON lines, completed, each with the number of its line. Empty lines are left out. A
    faulty line is an error of usage that names the line."""
    specs: list[tuple[int, dict[str, Any]]] = []
    with _opened(file) as lines:
        for number, text in enumerate(lines, 1):
            if not text.strip():
                continue
            try:
                spec = read_json(text)
            except InvalidInput as error:
                raise _wrong(file, number, f"{error.field} {error}") from None
            except ValueError as error:
                raise _wrong(file, number, f"is not JSON: {error}") from None
            if not isinstance(spec, dict):
                raise _wrong(file, number, "holds no spec: that is an object with a `kind`")
            specs.append((number, complete(spec)))
            if len(specs) > MOST_JOBS:
                raise _wrong(file, number, f"is one spec too many: a batch has at most {MOST_JOBS:,}")
    if not specs:
        raise typer.BadParameter(f"{file} holds no spec", param_hint="FILE")
    return specs


def place_of(field: str, places: Sequence[str]) -> str:
    """A field of a refusal, with the place of its spec (`specs.jsonl:3`) for the number of the spec in the batch."""
    named = SPEC_FIELD.fullmatch(field)
    if named is None or int(named[1]) >= len(places):
        return field
    return places[int(named[1])] + (f": {named[2]}" if named[2] else "")


@contextmanager
def _opened(file: str) -> Iterator[BinaryIO]:
    try:
        with Path(file).open("rb") as lines:
            yield lines
    except OSError as error:
        raise typer.BadParameter(f"{file}: {error.strerror}", param_hint="FILE") from None


def _wrong(file: str, number: int, message: str) -> typer.BadParameter:
    return typer.BadParameter(f"{file}, line {number}, {message}", param_hint="FILE")


def _find(client: Client, batch_id: str) -> LiveBatch:
    """The batch with this id, or whose id begins so."""
    if len(batch_id) >= _ID_LENGTH:
        return client.batch(batch_id)
    if not batch_id:
        raise typer.BadParameter("an id is not empty", param_hint="ID")
    if is_beginning(batch_id):
        none, fitting = "no batch", client.batches(limit=2, id=batch_id)
    else:
        latest = client.batches(limit=_SEARCHED)
        none = f"none of your latest {_SEARCHED:,} batches"
        fitting = [batch for batch in latest if batch.id.startswith(batch_id.lower())]
    if len(fitting) > 1:
        raise fail(f"the ids of several batches begin with {batch_id!r}; write more of the id", Exit.REFUSED)
    if not fitting:
        raise fail(f"{none} begins with {batch_id!r}", Exit.REFUSED)
    return fitting[0]


def _show(batch: Batch, *, as_json: bool) -> None:
    if as_json:
        output.document(batch)
        return
    output.properties(
        [
            ("id", batch.id),
            ("name", batch.name or None),
            ("status", state_of_batch(batch)),
            ("owner", batch.owner),
            ("tags", " ".join(f"{name}:{text}" for name, text in batch.tags.items()) or None),
            ("submitted", batch.created_at),
            ("finished", batch.finished_at),
        ]
    )


def _value(outcome: JobOutcome) -> str | None:
    return outcome.result.words if isinstance(outcome.result, ReduceResult) else None
