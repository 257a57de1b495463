"""Shared by all commands that talk to a service: the connection, short ids, waiting, and how errors end a command."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from warpfold.client.cli.exits import Exit, fail

if TYPE_CHECKING:
    from warpfold.client.api import Client
    from warpfold.client.live_jobs import LiveJob

_ID_LENGTH = 36
_SEARCHED = 1000

JobId = Annotated[str, typer.Argument(metavar="ID", help="Of a job, or as much of its beginning as is unique.")]
Timeout = Annotated[
    float | None, typer.Option("--timeout", min=0, help="Give up waiting after so many seconds (exit code 5).")
]


@dataclass(frozen=True, slots=True)
class Session:
    """The options before the command: the service, and how long to repeat a request."""

    url: str | None
    patience_s: float


@contextmanager
def service(context: typer.Context) -> "Iterator[Client]":
    """A connection to the service. An error in the block ends the command with its exit code."""
    from warpfold.client.api import Client

    session: Session = context.obj
    with ending_well(), Client(session.url, patience_s=session.patience_s) as client:
        yield client


@contextmanager
def ending_well() -> Iterator[None]:
    """Turn errors into a sentence and an exit code."""
    from warpfold.client.errors import JobFailed, NotConfigured, Refused, Unreachable, WaitedTooLong

    try:
        yield
    except (NotConfigured, Unreachable) as error:
        raise fail(str(error), Exit.UNREACHABLE) from None
    except Refused as error:
        if error.status >= 500:
            raise fail(f"the service is out of order: {error.detail or error.title}", Exit.UNREACHABLE) from None
        if error.errors:
            named = [f"{fault.field}: {fault.message}" if fault.field else fault.message for fault in error.errors]
            lines = "".join(f"\n  {each}" for each in named) if len(named) > 1 else f" {named[0]}"
            raise fail(f"refused:{lines}", Exit.REFUSED) from None
        raise fail(f"refused: {error.detail or error.title}", Exit.REFUSED) from None
    except WaitedTooLong as error:
        raise fail(str(error), Exit.TIMED_OUT) from None
    except JobFailed as error:
        raise fail(str(error), Exit.FAILED) from None


def find(client: "Client", job_id: str) -> "LiveJob":
    """The job with this id, or whose id begins so."""
    from warpfold.contract.id_beginning import is_beginning

    if len(job_id) >= _ID_LENGTH:
        return client.job(job_id)
    if not job_id:
        raise typer.BadParameter("an id is not empty", param_hint="ID")
    if is_beginning(job_id):
        none, jobs = "no job", client.jobs(limit=2, id=job_id)
    else:
        latest = client.jobs(limit=_SEARCHED)
        none, jobs = f"none of the latest {_SEARCHED} jobs", [job for job in latest if _begins(job, job_id)]
    if len(jobs) == 1:
        return jobs[0].refresh()
    if jobs:
        raise fail(f"the ids of several jobs begin with {job_id!r}; write more of the id", Exit.REFUSED)
    raise fail(f"{none} begins with {job_id!r}", Exit.REFUSED)


def _begins(job: "LiveJob", beginning: str) -> bool:
    return job.id.startswith(beginning.lower())


def wait_for(job: "LiveJob", timeout_s: float | None, *, show_progress: bool | None = None) -> "LiveJob":
    """Wait for a job's end, with a bar where there is a terminal; unless that is unwanted, the reason that keeps the
    job from starting is printed first."""
    with leaving_it_running(job):
        waiting = None if show_progress is False or job.ended else job.refresh().waiting
        if waiting is not None:
            typer.echo(f"job {job.id} waits: {waiting.detail}", err=True)
        return job.wait(timeout_s=timeout_s, show_progress=show_progress)


@contextmanager
def leaving_it_running(job: "LiveJob") -> Iterator[None]:
    """Ctrl-C in the block ends the command, not the job, and says so."""
    try:
        yield
    except KeyboardInterrupt:
        raise fail(f"the job goes on; `warpfold cancel {job.id}` ends it", Exit.INTERRUPTED) from None


def check_ended_well(*jobs: "LiveJob") -> None:
    """End the command with code 1 if a job did not succeed, and say which."""
    from warpfold.client.progress import state_of

    failed = [
        f"job {job.id} {state_of(job)}{f': {job.error}' if job.error else ''}" for job in jobs if not job.succeeded
    ]
    if failed:
        raise fail("\n".join(failed), Exit.FAILED)
