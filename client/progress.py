"""A progress bar for an upload, a job or a batch that a caller waits for, if standard error is a terminal."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC
from typing import TypeVar

from warpfold.client.batches import Batch
from warpfold.client.exchange import Steps
from warpfold.client.models import Job
from warpfold.client.sending import UploadState, watched
from warpfold.contract.wording import number_of, part_of

T = TypeVar("T")


State = UploadState | Job | Batch


def shown(wanted: bool | None, steps_of: Callable[[Callable[[State], None] | None], Steps[T]]) -> Steps[T]:
    """The conversation that `steps_of` makes, whose states a bar on standard error shows."""
    with bar(wanted) as follow:
        return (yield from watched(steps_of(follow), follow))


@contextmanager
def bar(wanted: bool | None) -> Iterator[Callable[[State], None] | None]:
    """The function to call with each state of an upload, and of a job or a batch, so that a bar on standard error shows
    it. It is None for no bar, which is the default where standard error is not a terminal."""
    with _line(wanted) as show:

        def follow(state: State) -> None:
            assert show is not None
            if isinstance(state, UploadState):
                show("upload", state.done, state.whole, state_of_upload(state))
            elif isinstance(state, Batch):
                show(f"batch {state.id[:8]}", state.progress.done, state.count, state_of_batch(state))
            else:
                done = state.progress
                show(f"{state.kind} {state.id[:8]}", done.done, done.total or None, state_of(state))

        yield None if show is None else follow


@contextmanager
def _line(wanted: bool | None) -> Iterator[Callable[[str, int, int | None, str], None] | None]:
    """The function that shows a name, how much is done, of how much, and a state; None for no bar."""
    if wanted is False or (wanted is None and not sys.stderr.isatty()):
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
    from rich.table import Column

    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(bar_width=30),
        TextColumn("{task.fields[state]}", markup=False, table_column=Column(overflow="fold")),
        TimeElapsedColumn(),
    )
    shown = Progress(*columns, console=Console(stderr=True), transient=True)
    line = shown.add_task("", total=None, state="")

    def show(name: str, done: int, total: int | None, state: str) -> None:
        shown.update(line, description=name, total=total, completed=done, state=state)
        shown.start()  # which does nothing the second time

    try:
        yield show
    finally:
        if shown.live.is_started:
            shown.stop()


def state_of_upload(sent: UploadState) -> str:
    """The state of an upload in a few words."""
    number = "" if sent.files == 1 else f", file {sent.file:,} of {sent.files:,}"
    return f"{part_of(sent.done, sent.whole)}{number}{sent.name and f': {sent.name}'}"


def state_of_batch(batch: Batch) -> str:
    """The state of a batch in a few words."""
    done = batch.progress
    counts = [
        f"{done.done:,} of {number_of('job', batch.count)}",
        *(
            f"{count:,} {name}"
            for name, count in (("running", done.running), ("failed", done.failed), ("cancelled", done.cancelled))
            if count
        ),
    ]
    return f"{batch.status}, {', '.join(counts)}"


def state_of(job: Job) -> str:
    """The state of a job in a few words."""
    if job.status == "queued" and job.queue_position is not None:
        start = job.estimated_start_at
        about = "" if start is None else f", starts about {start.astimezone(UTC):%H:%M:%S} UTC"
        return f"queued, number {job.queue_position}" + (f", {_why(job)}" if job.waiting else about)
    if job.status == "running" and job.progress.total:
        done = f"running, {job.progress.done:,} of {job.progress.total:,} {job.progress.unit}"
        return done + (f", {_why(job)}" if job.waiting else "")
    return f"{job.status} ({job.reason})" if job.reason else job.status


def _why(job: Job) -> str:
    """The reason for which no slot takes a job or a part of it."""
    return "" if job.waiting is None else job.waiting.reason.replace("_", " ")
