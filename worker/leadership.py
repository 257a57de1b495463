"""One dispatcher leads: a Postgres session that holds an advisory lock, and hears what others notify."""

from select import select
from typing import Self

import psycopg
from psycopg import sql

from warpfold.app.channels import QUEUE
from warpfold.app.db import NOTICES_LOSS, conninfo
from warpfold.worker.stop import Stop

KEY = 0x77_66_6C_64
"""The lock's number in this database: "wfld"."""


class Leadership:
    """A session of its own. Its end, however it comes, frees the lock for another dispatcher.

    Leading saves work, it is not what keeps jobs from running twice: a leader that has not yet heard of its session's
    end may act beside the next one, and the guards in each statement cope with that.
    Every method raises psycopg.OperationalError once the session is lost.
    """

    def __init__(self, url: str) -> None:
        self._connection = psycopg.connect(
            conninfo(url),
            autocommit=True,
            application_name="warpfold-dispatcher-leader",
            connect_timeout=5,
            # A session cut off by the network must end on both sides, or nobody leads.
            **NOTICES_LOSS,
            options="-c tcp_keepalives_idle=10 -c tcp_keepalives_interval=5 -c tcp_keepalives_count=3",
        )

    def won(self) -> bool:
        """Try to become the leader; True at once or, if another leads, False."""
        row = self._connection.execute("select pg_try_advisory_lock(%s)", (KEY,)).fetchone()
        if not (row and row[0]):
            return False
        self._connection.execute(sql.SQL("listen {}").format(sql.Identifier(QUEUE)))
        return True

    def wait(self, seconds: float, stop: Stop) -> None:
        """Sleep until something is notified, the time is over, or a stop is requested."""
        if not self._heard():
            select([self._connection.fileno(), stop.fileno()], [], [], max(0.0, seconds))
            self._heard()

    def _heard(self) -> bool:
        return bool(list(self._connection.notifies(timeout=0)))

    def close(self) -> None:
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()
