"""The outcome of a job: the columns of its row that changed between its acceptance and its end.

A request that waits for the end of one job gets the outcome with the notification of the end, so that the row need not
be read again. Postgres sends a notification after the commit, and the row of a job that has ended changes no more: the
message says what a reader of the row would find. It has the secret of the waiting request, which stands in the row and
nowhere else, so only who reads jobs could forge it. An outcome that is too long for a notification, or one of many that
one statement stores, is not sent: then those who wait read the row. So does everybody who has missed the message.
"""

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from sqlalchemy import CTE, ColumnElement, Text, case, cast, func, literal_column, select

from warpfold.app.db import OUTCOME
from warpfold.app.tables.jobs import jobs
from warpfold.contract.states import Status

_MOST_BYTES = 7_900
"""The longest message; Postgres refuses one of 8,000 bytes."""
_TIMES = ("cancel_requested_at", "started_at", "finished_at")

COLUMNS = (
    jobs.c.version,
    jobs.c.status,
    jobs.c.attempt,
    jobs.c.worker,
    jobs.c.cancel_requested_at,
    jobs.c.reason,
    jobs.c.error,
    jobs.c.progress_done,
    jobs.c.progress_total,
    jobs.c.progress_unit,
    jobs.c.started_at,
    jobs.c.finished_at,
    jobs.c.result,
)
"""The columns of an outcome, all of which an answer shows."""


def notify_waiting(changed: CTE) -> ColumnElement[Any]:
    """Notify the request that waits for the end of the job in `changed`, which has its id, its secret and `COLUMNS`,
    when this transaction commits. Nobody is notified if no request waits, if there are several jobs, or if the message
    would be too long."""
    pairs: list[ColumnElement[Any]] = []
    for each in COLUMNS:
        if each is not jobs.c.result:
            pairs += (literal_column(f"'{each.name}'"), changed.c[each.name])
    parts: tuple[ColumnElement[Any], ...] = (
        changed.c.id,
        literal_column("' '"),
        changed.c.secret,
        literal_column("' '"),
        func.json_build_object(*pairs),
        literal_column("chr(10)"),
        cast(changed.c.result, Text),
    )
    # `offset 0`: else the message would be made twice, for its length and to be sent.
    asked = select(func.concat(*parts).label("text")).where(changed.c.secret.is_not(None))
    message = asked.offset(literal_column("0")).subquery("message")
    is_one = select(func.count()).select_from(changed).scalar_subquery() == literal_column("1")
    fits = func.octet_length(message.c.text) < literal_column(str(_MOST_BYTES))
    return select(case((fits, func.pg_notify(OUTCOME, message.c.text)))).where(is_one).scalar_subquery()


def values_of(outcome: str) -> Mapping[str, object]:
    """The values of `COLUMNS`, as the row has them, from the part of a message behind the job's id and secret. The
    result is JSON text."""
    head, _, result = outcome.partition("\n")
    values: dict[str, Any] = json.loads(head)
    times = {name: datetime.fromisoformat(values[name]) for name in _TIMES if values[name] is not None}
    return {**values, **times, "status": Status(values["status"]), "result": result or None}
