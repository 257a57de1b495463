"""Commands that look at jobs: jobs, show, watch, wait."""

import math
import time
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from itertools import islice, product
from types import MappingProxyType
from typing import Annotated, Any, get_args

import typer

from warpfold.client.cli import output
from warpfold.client.cli.counts import Limit
from warpfold.client.cli.exits import Exit, fail
from warpfold.client.cli.output import Json
from warpfold.client.cli.session import JobId, Timeout, check_ended_well, find, leaving_it_running, service, wait_for
from warpfold.client.errors import WaitedTooLong
from warpfold.client.group_table import GroupbyResult, GroupTable
from warpfold.client.job_results import ReduceArrayResult, ReduceResult
from warpfold.client.jobs import Status
from warpfold.client.models import Child, Job
from warpfold.client.progress import state_of
from warpfold.contract.moments import moment
from warpfold.contract.wording import number_of

_PANEL = "Jobs"
_MOST_ROWS = 20
"""Values or groups of a result that are printed."""

_POINTS = "`warpfold results --job {id}` lists the points, and `warpfold report {id}` writes a report"
_MORE = MappingProxyType(
    {
        **dict.fromkeys(("benchmark", "accuracy", "scaling", "profile"), _POINTS),
        "preset": "`warpfold report {id}` shows the results",
    }
)
"""What to do next for results that are too long to be shown with a job, by its kind."""

_STATUSES = get_args(Status)

JobIds = Annotated[list[str], typer.Argument(metavar="ID...", help="Of jobs, or the beginnings of their ids.")]


def register(app: typer.Typer) -> None:
    """Add the commands to `app`."""
    app.command(rich_help_panel=_PANEL, epilog="Example: warpfold jobs --status failed --tag course:p05 --since 7d")(
        jobs
    )
    app.command(rich_help_panel=_PANEL, epilog="Example: warpfold show 5f0c")(show)
    app.command(rich_help_panel=_PANEL, epilog="Example: warpfold watch 5f0c 77ab --json | jq .progress.done")(watch)
    app.command(rich_help_panel=_PANEL, epilog="Example: warpfold wait $(warpfold submit job.yaml) --timeout 60")(wait)


def _complete_status() -> list[str]:
    return list(_STATUSES)


def jobs(
    context: typer.Context,
    *,
    status: Annotated[
        list[str] | None,
        typer.Option(help="queued, running, succeeded, failed, cancelled.", autocompletion=_complete_status),
    ] = None,
    kind: Annotated[list[str] | None, typer.Option(help="reduce, benchmark, …")] = None,
    owner: Annotated[list[str] | None, typer.Option(help="Whose jobs.")] = None,
    mine: Annotated[bool, typer.Option("--mine", help="Only your own jobs.")] = False,
    tag: Annotated[list[str] | None, typer.Option(help="NAME, or NAME:VALUE; several must all fit.")] = None,
    text: Annotated[
        str | None, typer.Option(metavar="WORDS", help="Words with which a word of the tags or the name begins.")
    ] = None,
    since: Annotated[
        str | None, typer.Option(metavar="TIME", help="Accepted since 2h, 7d, 2026-11-22 or 2026-11-22T10:00Z (UTC).")
    ] = None,
    until: Annotated[str | None, typer.Option(metavar="TIME", help="Accepted before such a time.")] = None,
    part_of: Annotated[str | None, typer.Option(metavar="ID", help="The parts of a preset's job.")] = None,
    batch: Annotated[str | None, typer.Option(metavar="ID", help="The jobs that a batch brought.")] = None,
    parts: Annotated[bool, typer.Option("--parts", help="List jobs that are parts of others, too.")] = False,
    limit: Limit = 20,
    count: Annotated[bool, typer.Option("--count", help="Only count them, up to 1000.")] = False,
    as_json: Json = False,
) -> None:
    """List jobs, newest first. Of --status, --kind and --owner several may be given: a job has one of them."""
    for each in status or ():
        if each not in _STATUSES:
            raise typer.BadParameter(f"one of {', '.join(_STATUSES)}", param_hint="--status")
    with service(context) as client:
        chosen: Any = {"status": status, "kind": kind, "owner": [client.whoami().name] if mine else owner}
        chosen |= {"tags": tag or (), "text": text, "batch": batch}
        chosen |= {"since": moment_of("--since", since), "until": moment_of("--until", until)}
        chosen["parent"] = find(client, part_of).id if part_of is not None else None if parts else "none"
        if count:
            counted = client.count_jobs(**chosen)
            more = "" if counted.exact else "+"
            typer.echo(output.line(counted) if as_json else f"{counted.number}{more}")
            return
        listed = client.jobs(**chosen, limit=limit)
    if as_json:
        output.lines(listed)
    else:
        names = ("id", "kind", "status", "owner", "submitted", "of", "value")
        output.table(names, ([*_brief(job)] for job in listed), right=("value",), fold="of")


def moment_of(option: str, text: str | None) -> datetime | None:
    """The time that an option says."""
    try:
        return None if text is None else moment(text, datetime.now(UTC))
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint=option) from None


def _brief(job: Job) -> list[object]:
    submitted = f"{job.created_at.astimezone():%m-%d %H:%M:%S}"
    done = job.progress
    state = f"running, {done.done / done.total:.0%}" if job.status == "running" and done.total else state_of(job)
    return [job.id[:8], job.kind, state, job.owner, submitted, in_words(job), value(job)]


def in_words(job: Job) -> str:
    """A job in a few words."""
    match job.spec:
        case {"op": op, "source": {**source}}:
            return f"{op} of {_elements(source)}"
        case {"preset": name} | {"puzzle": name}:
            return str(name)
        case {"strategies": [*names]} | {"methods": [*names]}:
            return ", ".join(map(str, names))
    from warpfold.contract.jobs import summary_of

    return summary_of(job.kind, job.spec)


def _elements(source: dict[Any, Any]) -> str:
    match source:
        case {"n": n, "distribution": name}:
            return f"{n:,} {name}"
        case {"path": path}:
            return str(path)
        case {"type": "dataset", "id": dataset}:
            return str(source.get("name") or f"dataset {dataset[:8]}")
        case {"type": "files"}:
            uploads = (each.get("name") or each["id"][:8] for each in source.get("uploads", ()))
            first, *more = filter(None, [source.get("glob"), *source.get("paths", ()), *uploads])
            return f"{first}" + (f" and {len(more):,} more" if more else "")
    return number_of("value", source.get("count", len(source.get("values", ()))))


def value(job: Job) -> str | None:
    """The value of a reduction, the shape of its values, or the number of its groups."""
    if isinstance(job.result, GroupbyResult):
        return number_of("group", job.result.groups)
    if isinstance(job.result, ReduceArrayResult):
        return f"array of {' × '.join(map(str, job.result.shape)) or 'one value'}"
    return job.result.words if isinstance(job.result, ReduceResult) else None


def show(context: typer.Context, job_id: JobId, as_json: Json = False) -> None:
    """Show a job with its result."""
    with service(context) as client:
        show_job(find(client, job_id), as_json=as_json)


def show_job(job: Job, *, as_json: bool) -> None:
    """Print one job."""
    if as_json:
        output.document(job)
        return
    result = job.result if isinstance(job.result, ReduceResult) else None
    others = {} if job.result is None or result is not None else job.result.model_dump(mode="json")
    scalars = {name: fact for name, fact in others.items() if isinstance(fact, str | int | float)}
    output.properties(
        [
            ("id", job.id),
            ("kind", job.kind),
            ("name", job.name),
            ("about", in_words(job) or None),
            ("note", job.note),
            ("status", state_of(job)),
            ("waits for", _waits_for(job)),
            ("starts about", job.estimated_start_at),
            ("error", job.error),
            ("value", None if result is None else result.words),
            ("exactly", None if result is None else result.fraction),
            ("hex", None if result is None else result.hex),
            ("computed by", None if result is None else _how(result)),
            ("prepare", f"{result.timings.prepare_ms:.3f} ms" if result and result.timings.prepare_ms >= 1 else None),
            ("kernel", None if result is None else f"{result.timings.kernel_ms:.3f} ms"),
            *_placed(job.result if isinstance(job.result, ReduceResult | ReduceArrayResult) else None),
            *scalars.items(),
            ("owner", job.owner),
            ("tags", " ".join(f"{name}:{text}" for name, text in job.tags.items()) or None),
            ("submitted", job.created_at),
            ("finished", job.finished_at),
            ("worker", job.worker),
            ("skipped", _skipped(job.children or ())),
            *((f"part {child.name}", _part(child)) for child in job.children or ()),
        ]
    )
    if isinstance(job.result, ReduceArrayResult | GroupTable):
        _print_first(job.result, job.id[:8])
    if job.ended and job.kind in _MORE:
        output.say(_MORE[job.kind].format(id=job.id[:8]))


def _print_first(result: ReduceArrayResult | GroupTable, job_id: str) -> None:
    """Print the first values, and say which command gives all of them if there are more."""
    count = result.groups if isinstance(result, GroupTable) else math.prod(result.shape)
    if result.artefact is not None:
        names, values = result.artefact.preview_columns, result.artefact.preview
        rows = _rows(values)
    elif isinstance(result, GroupTable):
        names = (*(key.name for key in result.keys), *(column.name for column in result.columns))
        rows = _rows(zip(*_columns(result), strict=True))
    else:
        names = (*(f"axis_{axis}" for axis in range(len(result.shape))), "value")
        indices = product(*map(range, result.shape))
        rows = _rows((*index, value) for index, value in zip(indices, _values(result), strict=True))
    if rows:
        keys = len(result.keys) if isinstance(result, GroupTable) else 0
        output.table(names, rows, right=names[keys:])
    if result.artefact is not None:
        output.say(f"`warpfold artefact {job_id} -o all.parquet` downloads all {count:,}")
    elif count > _MOST_ROWS:
        output.say(f"these are the first {_MOST_ROWS} of {count:,}; `warpfold show {job_id} --json` shows all")


def _columns(result: GroupTable) -> list[Sequence[object]]:
    return [
        *(key.values or () for key in result.keys),
        *(column.words or column.values or () for column in result.columns),
    ]


def _values(result: ReduceArrayResult) -> Sequence[object]:
    if result.time is not None:
        return [None if time is None else time.iso for time in result.time]
    return result.decimal or result.values or ()


def _rows(values: Iterable[Iterable[object]]) -> list[list[str]]:
    return [[_in_full(value) for value in row] for row in islice(values, _MOST_ROWS)]


def _in_full(value: object) -> str:
    """A value with all its digits, where a table would round a number."""
    return "" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def _placed(result: ReduceResult | ReduceArrayResult | None) -> list[tuple[str, str | None]]:
    """Why the service chose the slot, and the times that it predicted beside the one that the job took."""
    placement = None if result is None else result.placement
    if result is None or placement is None or not placement.predicted:
        return []
    predicted = sorted(placement.predicted.items(), key=lambda slot: slot[1])
    times = ", ".join(f"{slot} {seconds:g} s" for slot, seconds in predicted)
    counted = "" if placement.bytes is None else f" for {placement.bytes:,} bytes"
    took = f"it took {result.timings.total_ms / 1e3:.3g} s"
    return [("placed", placement.reason), ("predicted", f"{times}{counted}; {took}")]


def _waits_for(job: Job) -> str | None:
    if job.hold is None:
        return None if job.waiting is None else job.waiting.detail
    then = job.hold.until
    until = "another of the owner's jobs ends" if then is None else f"{then.astimezone():%Y-%m-%d %H:%M}"
    return f"the owner's quota ({job.hold.quota}, {job.hold.limit:g}), until {until}"


def _skipped(children: Sequence[Child]) -> str | None:
    skipped = sum(child.skipped for child in children)
    return f"{skipped} of {len(children)} jobs, which nothing there can run" if skipped else None


def _part(child: Child) -> str:
    state = "skipped" if child.skipped else child.status
    return f"{state}, {child.kind} {child.id}" + (f": {child.error}" if child.error else "")


def _how(result: ReduceResult) -> str:
    return f"{result.strategy} on {result.device.get('name', result.backend)}" + (
        ", correctly rounded" if result.correctly_rounded else ""
    )


def watch(context: typer.Context, job_ids: JobIds, timeout: Timeout = None, as_json: Json = False) -> None:
    """Follow jobs to their ends, one after another, with a live bar, or with --json a line for each change."""
    with service(context) as client:
        jobs, began, ended = [find(client, job_id) for job_id in job_ids], time.monotonic(), []
        for job in jobs:
            # The timeout holds for all jobs together.
            left = None if timeout is None else max(0.0, round(timeout - (time.monotonic() - began), 2))
            if as_json:
                with leaving_it_running(job):
                    ended.append(client.wait(job, timeout_s=left, progress=lambda seen: output.lines([seen])))
            else:
                ended.append(wait_for(job, left))
                show_job(ended[-1], as_json=False)
        check_ended_well(*ended)


def wait(context: typer.Context, job_ids: JobIds, timeout: Timeout = None, as_json: Json = False) -> None:
    """Wait for jobs, quietly. Exit code 0 if all succeeded, 1 if not, 5 after the timeout."""
    with service(context) as client:
        give_up = None if timeout is None else time.monotonic() + timeout  # the timeout holds for all jobs together
        ended = [find(client, job_id) for job_id in job_ids]
        for job in ended:
            try:
                left = None if give_up is None else max(0.0, give_up - time.monotonic())
                wait_for(job, left, show_progress=False)
            except WaitedTooLong:
                waiting = job.refresh().waiting
                why = "" if waiting is None else f": {waiting.detail}"
                raise fail(f"job {job.id} is still not done after {timeout:g} s{why}", Exit.TIMED_OUT) from None
            if as_json:
                output.lines([job])
        check_ended_well(*ended)
