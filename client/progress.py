"""A progress bar for a job that is waited for, where somebody looks."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Column

from warpfold.client.jobs import Follow
from warpfold.client.models import Job


@contextmanager
def bar(wanted: bool | None) -> Iterator[Follow | None]:
    """What to tell of a job so that a bar on standard error shows it; None for no bar, as is the default where
    standard error is no terminal."""
    if wanted is False or (wanted is None and not sys.stderr.isatty()):
        yield None
        return
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(bar_width=30),
        TextColumn("{task.fields[state]}", markup=False, table_column=Column(overflow="fold")),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as shown:
        line = shown.add_task("", total=None, state="")

        def follow(job: Job) -> None:
            done = job.progress
            shown.update(
                line,
                description=f"{job.kind} {job.id[:8]}",
                total=done.total or None,
                completed=done.done,
                state=state_of(job),
            )

        yield follow


def state_of(job: Job) -> str:
    """Where a job is, in a few words."""
    if job.status == "queued" and job.queue_position is not None:
        return f"queued, number {job.queue_position}" + (f", {_why(job)}" if job.waiting else "")
    if job.status == "running" and job.progress.total:
        done = f"running, {job.progress.done:,} of {job.progress.total:,} {job.progress.unit}"
        return done + (f", {_why(job)}" if job.waiting else "")
    return f"{job.status} ({job.reason})" if job.reason else job.status


def _why(job: Job) -> str:
    """Why no slot takes a job or a part of it."""
    return "" if job.waiting is None else job.waiting.reason.replace("_", " ")
