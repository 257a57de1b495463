"""SQL of counters: add to them, read them all."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from sqlalchemy import Connection, select
from sqlalchemy.dialects.postgresql import insert as upsert

from warpfold.app.tables.service import counters


class Name(StrEnum):
    """What is counted, and by which labels."""

    JOBS_ENDED = "jobs_ended"  # kind, status, reason
    JOB_WAIT = "job_wait"  # kind, bucket: jobs whose wait fell into it
    JOB_WAIT_SECONDS = "job_wait_seconds"  # kind
    JOB_RUN = "job_run"  # kind, bucket
    JOB_RUN_SECONDS = "job_run_seconds"  # kind
    KERNEL_SECONDS = "kernel_seconds"  # host, device, uuid
    ATTEMPTS_LOST = "attempts_lost"  # cause
    LOG_LINES_DROPPED = "log_lines_dropped"  # role


Labels = tuple[tuple[str, str], ...]
"""Names and values, in the order of the names."""


@dataclass(frozen=True, slots=True)
class Count:
    """The value of one counter."""

    name: str
    labels: Mapping[str, str]
    value: float


def labelled(**labels: str) -> Labels:
    """`labels` as a key."""
    return tuple(sorted(labels.items()))


def add(connection: Connection, amounts: Mapping[tuple[Name, Labels], float]) -> None:
    """Add to counters, in the transaction of what is counted: so it counts once or not at all."""
    if not amounts:
        return
    rows = [
        {"name": name.value, "labels": dict(labels), "value": amount}
        for (name, labels), amount in sorted(amounts.items())  # in one order for all, so that none waits in a circle
    ]
    given = upsert(counters).values(rows)
    connection.execute(
        given.on_conflict_do_update(
            index_elements=["name", "labels"], set_={"value": counters.c.value + given.excluded.value}
        )
    )


def read(connection: Connection) -> Sequence[Count]:
    """All of them: a few for each kind of job and each GPU."""
    return [Count(row.name, row.labels, row.value) for row in connection.execute(select(counters))]
