"""Small questions to Postgres that the search of a page of jobs needs answered beforehand. Each is asked once a
page."""

from collections.abc import Callable, Hashable
from datetime import datetime, timedelta
from typing import Any, Concatenate, ParamSpec, TypeVar

from sqlalchemy import Connection, TextClause, text

P = ParamSpec("P")
T = TypeVar("T")

_TURNED = timedelta(seconds=30)
"""The most by which the order of acceptance and the order of the times may differ. A job has the time at which its
submission begins, and gets its number in the list less than this time afterwards."""
LARGEST = (1 << 63) - 1
"""More than the `seq` of any job."""

# Every job that was accepted at a time or later has at least the lowest number of the jobs accepted soon after it.
# Without `offset 0` Postgres would look for the smallest number in the order of the numbers, through all earlier jobs.
_LOWEST: TextClause = text("""
    with first as (select created_at from jobs where created_at >= :since order by created_at limit 1)
    select min(seq) from (
        select jobs.seq from first cross join lateral (
            select seq from jobs
            where created_at >= first.created_at and created_at < first.created_at + :turned offset 0
        ) as jobs offset 0
    ) as soon
""")
_HIGHEST: TextClause = text("""
    with last as (select created_at from jobs where created_at < :until order by created_at desc limit 1)
    select max(seq) from (
        select jobs.seq from last cross join lateral (
            select seq from jobs
            where created_at <= last.created_at and created_at > last.created_at - :turned offset 0
        ) as jobs offset 0
    ) as soon
""")


class PageLookups:
    """The small questions of one page to Postgres: each is asked once, however many lists the page searches."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self._answers: dict[Hashable, Any] = {}

    def ask(self, question: Callable[Concatenate[Connection, P], T], *about: P.args, **named: P.kwargs) -> T:
        """The answer to a question about something hashable."""
        return self.once((question, about), lambda: question(self.connection, *about, **named))

    def once(self, name: Hashable, answer: Callable[[], T]) -> T:
        """The answer that was found under this name before, or is found now."""
        if name not in self._answers:
            self._answers[name] = answer()
        known: T = self._answers[name]
        return known


def range_of(connection: Connection, since: datetime | None, until: datetime | None) -> tuple[int, int]:
    """The lowest `seq` that a job of a filter's time can have, and one more than the highest."""
    low, high = 0, LARGEST
    if since is not None:
        lowest = connection.execute(_LOWEST, {"since": since, "turned": _TURNED}).scalar_one()
        low = LARGEST if lowest is None else lowest
    if until is not None:
        highest = connection.execute(_HIGHEST, {"until": until, "turned": _TURNED}).scalar_one()
        high = 0 if highest is None else highest + 1
    return low, high
