"""Runs the demo and prints its table. Exit code 0 only if every answer is right."""

import argparse
import signal
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from textwrap import shorten

from rich.progress import BarColumn, Progress, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn
from rich.table import Column
from rich.text import Text

from warpfold.client.api import Client
from warpfold.client.demo.cases import Case, cases
from warpfold.client.demo.service import StartFailed, running_service
from warpfold.client.errors import Refused, WarpfoldError
from warpfold.client.job_results import ReduceResult
from warpfold.client.models import Job
from warpfold.contract.terminal import console, table

_MOST_OF_ANSWER = 60
"""Characters of a refusal that the table shows: a list of all ops would make it wider than any terminal."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The service's answer to one case."""

    case: Case
    right: bool
    answer: str
    where: str = ""
    timing: str = ""


def run_case(client: Client, case: Case, show: Progress, line: TaskID) -> Outcome:
    """Submit one case over HTTP, follow it to its end and judge the answer."""

    def follow(job: Job) -> None:
        done, total = job.progress.done, job.progress.total
        if total:
            show.update(line, completed=done, total=total, state=f"{job.status} {done:,}/{total:,} {job.progress.unit}")
        else:
            show.update(line, state=job.status)

    try:
        job = client.wait(client.submit(case.spec), progress=follow)
    except Refused as refusal:
        fields = [error.field for error in refusal.errors]
        answer = shorten(
            "; ".join(error.message for error in refusal.errors) or str(refusal), _MOST_OF_ANSWER, placeholder=" …"
        )
        return Outcome(case, case.refused_field is not None and case.refused_field in fields, answer)
    if not isinstance(job.result, ReduceResult):
        return Outcome(case, False, f"{job.status}: {job.error}")
    result = job.result
    timings = result.timings
    return Outcome(
        case,
        right=case.expected is not None and result.value == case.expected,
        answer=str(result.value) + (f"\n{result.hex}" if result.hex else ""),
        where=f"{result.strategy} on {result.backend}",
        timing=f"{timings.kernel_ms:.2f} / {timings.total_ms:.1f}",
    )


def run_sweep(client: Client, case: Case, show: Progress, line: TaskID) -> Outcome:
    """Submit a batch, wait for its end and judge the answers of all of its jobs."""
    show.update(line, state="running")
    batch = client.sweep(case.spec, case.over, name=case.title).wait(show_progress=False)
    values = [outcome.value for outcome in batch.outcomes()]
    assert isinstance(case.expected, Sequence)
    right = sum(value == expected for value, expected in zip(values, case.expected, strict=True))
    timing = ""
    if batch.started_at is not None and batch.finished_at is not None:
        timing = f"all: {(batch.finished_at - batch.started_at).total_seconds() * 1e3:.1f}"
    return Outcome(case, right == len(values), f"{right} of {len(values)} right", timing=timing)


def show_outcomes(outcomes: Sequence[Outcome]) -> None:
    """Print the outcomes as a table for people."""
    rows = (
        (
            outcome.case.title + (f"\n{outcome.case.remark}" if outcome.case.remark else ""),
            outcome.answer,
            _expected(outcome.case),
            Text("right", style="green") if outcome.right else Text("WRONG", style="bold red"),
            outcome.where,
            outcome.timing,
        )
        for outcome in outcomes
    )
    table(("job", "answer", "expected", "verdict", "ran as", "kernel / total ms"), rows, fold="job")


def _expected(case: Case) -> str:
    if case.refused_field:
        return f"refused: {case.refused_field}"
    return f"{len(case.expected)} values" if isinstance(case.expected, Sequence) else str(case.expected)


def main() -> int:
    """Run everything, and return the exit code of the process."""
    parser = argparse.ArgumentParser(prog="python -m warpfold.client.demo", description=__doc__)
    parser.add_argument("--slots", help="cpu,cuda:0,…  [default: every GPU seen, and cpu]")
    slots = parser.parse_args().slots
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda number, _: sys.exit(128 + number))  # leaving the block ends the service, too
    options = () if slots is None else ("--slots", slots)
    out = console()
    with tempfile.TemporaryDirectory(prefix="warpfold-demo-") as name:
        root = Path(name)
        (root / "data").mkdir()
        chosen = cases(root / "data")
        outcomes: list[Outcome] = []
        columns = (
            SpinnerColumn(),
            TextColumn("{task.description}"),
            BarColumn(bar_width=30),
            TextColumn("{task.fields[state]}", markup=False, table_column=Column(overflow="fold")),
            TimeElapsedColumn(),
        )
        try:
            with Progress(*columns, console=out, transient=True) as show:
                start = show.add_task("starting Postgres, Redis, api, dispatcher, workers", total=None, state="")
                with running_service(root, *options) as service, Client(service.url, service.token) as client:
                    show.update(start, description=f"service at {service.url}", total=1, completed=1)
                    for case in chosen:
                        line = show.add_task(case.title, total=None, state="submitting")
                        run = run_sweep if case.over else run_case
                        outcomes.append(run(client, case, show, line))
                        show.update(line, total=1, completed=1, state="right" if outcomes[-1].right else "WRONG")
        except (StartFailed, WarpfoldError) as error:
            out.print(Text(f"the demo broke off: {error}", style="bold red"), soft_wrap=True)
            return 1
        except KeyboardInterrupt:
            return 130
    show_outcomes(outcomes)
    right = sum(outcome.right for outcome in outcomes)
    out.print(f"{right} of {len(chosen)} right")
    return 0 if right == len(chosen) else 1


if __name__ == "__main__":
    sys.exit(main())
