"""The command that merges tables of exact states."""

from pathlib import Path
from typing import Annotated

import typer

from warpfold.client.api import Client
from warpfold.client.cli import output
from warpfold.client.cli.counts import count_option
from warpfold.client.cli.groups import print_values, write_array
from warpfold.client.cli.keyed import WRITTEN, names_without_states, print_table, write_table
from warpfold.client.cli.output import Json
from warpfold.client.cli.session import Timeout, check_ended_well, find, service, wait_for
from warpfold.client.group_table import MergeResult
from warpfold.client.jobs import result_of
from warpfold.client.live_jobs import LiveJob
from warpfold.contract.wording import number_of
from warpfold.kernels.places.place import is_url

_EXAMPLES = """Examples:

warpfold merge 5f0c 81ab

warpfold merge 5f0c february.parquet -o quarter.parquet --states"""


def register(app: typer.Typer) -> None:
    """Add the command to `app`."""
    app.command(rich_help_panel="Jobs", epilog=_EXAMPLES)(merge)


def merge(
    context: typer.Context,
    tables: Annotated[
        list[str],
        typer.Argument(metavar="TABLE...", help="A job with states, an Arrow or Parquet file of yours, or a URL."),
    ],
    *,
    sort: Annotated[bool, typer.Option(help="Order groups by their keys, or as the tables have them.")] = True,
    min_count: Annotated[int | None, count_option("Groups of fewer elements have no value.")] = None,
    max_groups: Annotated[int | None, count_option("Fail if there are more groups.", least=1)] = None,
    states: Annotated[bool, typer.Option("--states", help="Store the merged states, too.")] = False,
    to: Annotated[
        Path | None,
        typer.Option("--output", "-o", dir_okay=False, help="Write to this file; an array as .npy."),
    ] = None,
    timeout: Timeout = None,
    as_json: Json = False,
) -> None:
    """Merge tables of exact states: of jobs that were run with --states, and of such tables in files.

    Groups or values with equal keys are added up and rounded once, to the bits of one reduction of all the elements.
    """
    if to is not None and (as_json or to.suffix.lower() not in (*WRITTEN, ".npy")):
        known = ", ".join((*WRITTEN, ".npy"))
        raise typer.BadParameter(f"a name should end in {known}, without --json", param_hint="-o")
    with service(context) as client:
        chosen = {"sort": sort, "min_count": min_count, "max_groups": max_groups, "states": states}
        fields = {name: value for name, value in chosen.items() if value is not None}
        named = [_named(client, table) for table in tables]
        ended = wait_for(client.submit({"kind": "merge", "tables": named, **fields}), timeout)
        if as_json:
            output.document(ended)
            check_ended_well(ended)
            return
        result = result_of(ended)
        assert isinstance(result, MergeResult), "the job is a merge"
        _show(client, ended, result, to)


def _named(client: Client, table: str) -> dict[str, str]:
    """A table as a spec names it; a file is uploaded. Raises Exit for a job that is not there."""
    if is_url(table):
        return {"type": "table", "path": table}
    path = Path(table)
    if path.exists():
        return {"type": "dataset", "id": client.upload(path, path.name[-128:]).id}
    return {"type": "artefact", "job_id": find(client, table).id}


def _show(client: Client, job: LiveJob, result: MergeResult, to: Path | None) -> None:
    values = client.merged(job)
    if result.shape is None and to is not None:
        if to.suffix.lower() == ".npy":
            raise typer.BadParameter("groups are a table, and no array", param_hint="-o")
        write_table(values, to)
    elif result.shape is None:
        shown = names_without_states(values)
        print_table(shown, [values[name].to_pylist() for name in shown])
    elif to is None:
        print_values(values.reshape(-1).tolist(), result.shape)
    elif result.artefact is not None:
        client.artefact(job, to)
    else:
        write_array(values, to)
    merged = number_of("group" if result.shape is None else "value", result.groups)
    where = result.device.get("name", result.backend)
    output.say(
        f"{merged} of {number_of('table', result.tables)}; exact, correctly rounded; {where}, {result.timings.words}; "
        f"job {job.id}"
    )
