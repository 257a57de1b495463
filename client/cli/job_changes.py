"""Commands that change jobs: cancel, edit and delete, by ids, or all of one's own that a filter leaves."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from warpfold.client.cli import output
from warpfold.client.cli.exits import Exit, fail
from warpfold.client.cli.jobs import moment_of
from warpfold.client.cli.output import Json
from warpfold.client.cli.session import JobId, find, service
from warpfold.client.errors import Refused
from warpfold.client.jobs import JobFilter, Status
from warpfold.client.live_jobs import LiveJob
from warpfold.contract.wording import number_of

if TYPE_CHECKING:
    from warpfold.client.api import Client

_PANEL = "Jobs"
_MOST = 10_000
"""How many jobs a filter changes at most."""

_Ids = Annotated[
    list[str] | None,
    typer.Argument(metavar="ID...", help="Of jobs, or the beginnings of their ids. Without any, a filter is needed."),
]
_Tag = Annotated[list[str] | None, typer.Option(help="All of your own with the tag NAME, or NAME:VALUE.")]
_Text = Annotated[str | None, typer.Option(metavar="WORDS", help="All of your own with such words, as `jobs` has it.")]
_Since = Annotated[str | None, typer.Option(metavar="TIME", help="All of your own accepted since 2h, 2026-11-22, ….")]
_Until = Annotated[str | None, typer.Option(metavar="TIME", help="All of your own accepted before such a time.")]


def register(app: typer.Typer) -> None:
    """Add the commands to `app`."""
    app.command(rich_help_panel=_PANEL, epilog="Examples: warpfold cancel 5f0c 77ab; warpfold cancel --tag study:x")(
        cancel
    )
    app.command(rich_help_panel=_PANEL, epilog="Example: warpfold edit 5f0c --name 'first sweep' --tag study:x")(edit)
    app.command(rich_help_panel=_PANEL, epilog="Examples: warpfold delete 5f0c; warpfold delete --until 30d --yes")(
        delete
    )


def cancel(
    context: typer.Context,
    *,
    job_ids: _Ids = None,
    tag: _Tag = None,
    text: _Text = None,
    since: _Since = None,
    until: _Until = None,
    as_json: Json = False,
) -> None:
    """Ask for the end of jobs. A running one ends within about a second."""
    with service(context) as client:
        jobs = _chosen(client, job_ids, ("queued", "running"), _filter(tag, text, since, until))
        _each(
            jobs, LiveJob.cancel, "cancelled", lambda job: "cancelled" if job.ended else "is being cancelled", as_json
        )


def delete(
    context: typer.Context,
    *,
    job_ids: _Ids = None,
    tag: _Tag = None,
    text: _Text = None,
    since: _Since = None,
    until: _Until = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    as_json: Json = False,
) -> None:
    """Delete jobs that have ended, with their measurements and stored results. Asks first where a filter chose them."""
    with service(context) as client:
        jobs = _chosen(client, job_ids, ("succeeded", "failed", "cancelled"), _filter(tag, text, since, until))
        if jobs and not job_ids and not yes:
            typer.confirm(f"Delete {number_of('job', len(jobs))} for good?", abort=True, err=True)
        _each(jobs, _deleted, "deleted", lambda _: "deleted", as_json)


def _deleted(job: LiveJob) -> LiveJob:
    job.delete()
    return job


def edit(
    context: typer.Context,
    *,
    job_id: JobId,
    name: Annotated[str | None, typer.Option(help="What it is to be called; '' takes the name away.")] = None,
    note: Annotated[str | None, typer.Option(help="A note about it; '' takes the note away.")] = None,
    tag: Annotated[list[str] | None, typer.Option(help="NAME or NAME:VALUE, beside the tags that it has.")] = None,
    untag: Annotated[list[str] | None, typer.Option(metavar="NAME", help="A tag to take away.")] = None,
    as_json: Json = False,
) -> None:
    """Change the name, the note or the tags of a job."""
    with service(context) as client:
        job = find(client, job_id)
        changed: Any = {}
        if name is not None:
            changed["name"] = name
        if note is not None:
            changed["note"] = note
        if tag or untag:
            kept = {each: value for each, value in job.tags.items() if each not in (untag or ())}
            changed["tags"] = kept | {each: value for each, _, value in (text.partition(":") for text in tag or ())}
        if not changed:
            raise typer.BadParameter("say what to change: --name, --note, --tag or --untag")
        job.edit(**changed)
    if as_json:
        output.document(job)
    else:
        tags = " ".join(f"{each}:{value}" for each, value in job.tags.items())
        output.properties([("id", job.id), ("name", job.name), ("note", job.note), ("tags", tags or None)])


def _filter(tag: list[str] | None, text: str | None, since: str | None, until: str | None) -> JobFilter:
    """What the options say, without those that are not given."""
    chosen: JobFilter = {}
    if tag:
        chosen["tags"] = tag
    if text:
        chosen["text"] = text
    if since:
        chosen["since"] = moment_of("--since", since)
    if until:
        chosen["until"] = moment_of("--until", until)
    return chosen


def _chosen(
    client: "Client", job_ids: Sequence[str] | None, statuses: Sequence[Status], chosen: JobFilter
) -> Sequence[LiveJob]:
    """The jobs with these ids, or one's own in these states that the filter leaves."""
    if bool(job_ids) == bool(chosen):
        raise typer.BadParameter("give ids of jobs, or one of --tag, --text, --since and --until")
    if job_ids:
        # All ids are checked first, so that an unknown id changes nothing.
        return [find(client, job_id) for job_id in job_ids]
    own: JobFilter = {**chosen, "status": statuses, "owner": client.whoami().name, "parent": "none"}
    return client.jobs(**own, limit=_MOST)


def _each(
    jobs: Sequence[LiveJob],
    change: Callable[[LiveJob], LiveJob],
    done: str,
    in_words: Callable[[LiveJob], str],
    as_json: bool,
) -> None:
    """Change each of the jobs, and say which were refused."""
    refused: list[str] = []
    changed: list[LiveJob] = []
    for job in jobs:
        try:
            changed.append(change(job))
        except Refused as refusal:
            refused.append(f"job {job.id} is not {done}: {refusal.detail or refusal.title}")
    if as_json:
        output.lines(changed)
    else:
        for job in changed:
            output.say(f"{job.id} {in_words(job)}")
        if not jobs:
            output.say("no job of yours fits")
    if refused:
        raise fail("\n".join(refused), Exit.REFUSED)
