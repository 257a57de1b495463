"""Where the time of a small job goes on an idle service: `python -m benchmarks.latency` prints a table by stage.

Jobs of 1,000 values are submitted one after another, each with `Prefer: wait`. The ends of the stages are read
afterwards from what every service keeps: the times in the job's row, which Postgres takes when each transaction begins,
and the times of the log lines of the api and the worker. One clock gives all of these times.

The stages follow each other without a gap, so they explain the whole. The acceptance and the end wait for the disk,
because clients see both. How long the disk takes is measured afterwards and printed below the stages.
"""

import argparse
import asyncio
import itertools
import json
import os
import statistics
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from benchmarks.figures import Figure, environment, measured_service, report
from benchmarks.http_load import Connection, request
from benchmarks.service import body

_SPARE_STANDS_BY_S = 6.0
"""How long a spare child takes to stand by, at most."""
STAGES = (
    "request → accept begins: HTTP, token, spec",
    "accept and hand over: statement and commit",
    "commit → claim begins: notification",
    "claim, child, result (without computing)",
    "computing in the child",
    "store the result: statement and commit",
    "commit → answer: notification, reading, HTTP",
)


@dataclass(frozen=True, slots=True)
class Times:
    """When each stage of a job ended, in seconds since the epoch, and how long its child computed, in seconds."""

    sent: float
    accepting: float
    accepted: float
    claiming: float
    storing: float
    stored: float
    answered: float
    computing_s: float

    def stages_ms(self) -> Sequence[float]:
        """How long each of `STAGES` took."""
        marks = (self.sent, self.accepting, self.accepted, self.claiming)
        ends = [(later - earlier) * 1e3 for earlier, later in itertools.pairwise(marks)]
        computing = self.computing_s * 1e3
        claimed = (self.storing - self.claiming) * 1e3 - computing
        return [*ends, claimed, computing, (self.stored - self.storing) * 1e3, (self.answered - self.stored) * 1e3]

    @property
    def total_ms(self) -> float:
        return (self.answered - self.sent) * 1e3


async def _submitted(host: str, port: int, message: bytes, times: int) -> list[tuple[float, float, Mapping[str, Any]]]:
    connection = Connection(host, port)
    await connection.open()
    answers = []
    for _ in range(times):
        sent = time.time()
        exchange = await connection.send(message)
        answers.append((sent, sent + exchange.seconds, json.loads(exchange.body)))
        await asyncio.sleep(0.002)  # time for the worker to end its round and to wait again
    connection.close()
    return answers


def _seconds(moment: str) -> float:
    return datetime.fromisoformat(moment).timestamp()


def _noted(log: Path, event: str) -> Mapping[str, float]:
    """When a process logged `event` of each job, by the job's id."""
    notes = [json.loads(line) for line in log.read_text().splitlines() if line.startswith("{")]
    return {note["job"]: _seconds(note["timestamp"]) for note in notes if note["event"] == event and "job" in note}


def disk_ms(folder: Path, times: int = 100) -> float:
    """The median time of syncing 8 KiB that were appended to a file in `folder`: a commit waits so long."""
    taken = []
    with (folder / "synced").open("wb", buffering=0) as file:
        for _ in range(times):
            file.write(bytes(8192))
            began = time.perf_counter()
            os.fdatasync(file.fileno())
            taken.append((time.perf_counter() - began) * 1e3)
    return statistics.median(taken)


def measured(times: int) -> tuple[list[Times], float]:
    """The times of `times` jobs on a service of their own, which other jobs have warmed up, and `disk_ms` of its
    folder."""
    with environment(WARPFOLD_COMPILE_AHEAD="false"), measured_service() as (service, data_dir):
        host, port = service.url.removeprefix("http://").split(":")
        message = request("POST", "/v1/jobs", service.token, body(), Prefer="wait=10")
        asyncio.run(_submitted(host, int(port), message, 30))
        time.sleep(_SPARE_STANDS_BY_S)
        answers = asyncio.run(_submitted(host, int(port), message, times))
        synced_ms = disk_ms(data_dir)
        logs = data_dir / "logs"
        accepted = _noted(logs / "api.log", "submitted")
        stored = _noted(logs / "worker-cpu.log", "succeeded")
    jobs = [
        Times(
            sent,
            _seconds(job["created_at"]),
            accepted[job["id"]],
            _seconds(job["started_at"]),
            _seconds(job["finished_at"]),
            stored[job["id"]],
            answered,
            job["result"]["timings"]["total_ms"] / 1e3,
        )
        for sent, answered, job in answers
    ]
    return jobs, synced_ms


def rows(jobs: Sequence[Times], synced_ms: float) -> list[tuple[str, float]]:
    """The rows of the table, in milliseconds: the median of each stage, the sum of these medians, the median of the
    whole, which may differ from that sum, and the disk."""
    medians = [statistics.median(taken) for taken in zip(*(job.stages_ms() for job in jobs), strict=True)]
    return [
        *zip(STAGES, medians, strict=True),
        ("sum of these medians", sum(medians)),
        ("from request to answer", statistics.median(job.total_ms for job in jobs)),
        ("one wait for the disk, of which the stages have two", synced_ms),
    ]


def table(jobs: Sequence[Times], synced_ms: float) -> str:
    """A Markdown table of `rows`."""
    lines = ["| stage | median, ms |", "|---|---:|"]
    return "\n".join([*lines, *(f"| {stage} | {taken:.2f} |" for stage, taken in rows(jobs, synced_ms))])


def figures(jobs: Sequence[Times], synced_ms: float) -> list[Figure]:
    """The figures of each stage and of the whole."""
    ordered = sorted(job.total_ms for job in jobs)
    p50, p95 = statistics.median(ordered), ordered[int(0.95 * len(ordered))]
    whole = "submit → result, 1,000 values"
    return [
        *(Figure(stage, f"{taken:.2f} ms", "", True) for stage, taken in rows(jobs, synced_ms)),
        Figure(f"{whole}, p50", f"{p50:.1f} ms", "≤ 8 ms", p50 <= 8),
        Figure(f"{whole}, p95", f"{p95:.1f} ms", "≤ 15 ms", p95 <= 15),
    ]


def main() -> int:
    """Measure and print; returns 0 if the whole meets its target."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--times", type=int, default=200, help="how many jobs to measure")
    parser.add_argument("--out", type=Path, help="write the figures with their provenance as JSON")
    options = parser.parse_args()
    jobs, synced_ms = measured(options.times)
    print(table(jobs, synced_ms))
    return report("A small job on an idle service", figures(jobs, synced_ms), options.out)


if __name__ == "__main__":
    sys.exit(main())
