"""Counting lines of logs that could not be written: each process tells of its own when it comes by."""

from sqlalchemy import Connection

from warpfold.app.logs import dropped_lines
from warpfold.app.metrics.counters import Name, add, labelled

ROLES = ("api", "dispatcher", "worker")
"""Who tells. A child and `warpfold serve` leave it to the line that they write once they can again."""


class DroppedLines:
    """The lines that this process dropped, and how many of them Postgres knows of."""

    def __init__(self, role: str) -> None:
        self._role = role
        self._known = 0

    def uncounted(self) -> int:
        """How many are to be counted."""
        return max(0, dropped_lines() - self._known)

    def count(self, connection: Connection, lines: int) -> None:
        """Add so many to the counter of this role; `counted` is to follow the commit."""
        add(connection, {(Name.LOG_LINES_DROPPED, labelled(role=self._role)): float(lines)})

    def counted(self, lines: int) -> None:
        """Postgres knows of so many more."""
        self._known += lines
