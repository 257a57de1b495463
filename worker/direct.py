"""Receives the jobs that are handed to a worker in the moment of their acceptance (`app.jobs.direct`)."""

import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from uuid import UUID

import psycopg
import structlog
from psycopg import sql
from structlog.typing import FilteringBoundLogger

from warpfold.app.db import LETS_GO, NOTICES_LOSS, conninfo
from warpfold.app.jobs.direct import LISTEN, attempt_of
from warpfold.contract.backoff import Backoff

log: FilteringBoundLogger = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class DirectMessage:
    """An attempt that was handed over directly."""

    job_id: UUID
    attempt: int


class DirectMessages:
    """Listens for a worker, on a connection of its own. While it is connected, jobs may be handed to the worker
    directly. No method raises an error of the connection: without it, jobs come by the worker's queue."""

    def __init__(self, database_url: str, worker: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._url = conninfo(database_url)
        self._worker = worker
        self._clock = clock
        self._connection: psycopg.Connection[tuple[object, ...]] | None = None
        self._came: deque[DirectMessage] = deque()
        self._pause = Backoff()
        self._again = 0.0

    def fileno(self) -> int | None:
        """The file number that can be read when a message comes, or when the connection is lost; None while there is no
        connection."""
        return None if self._connection is None else self._connection.fileno()

    def listen(self) -> None:
        """Connect, unless that is done, or has failed a moment ago."""
        if self._connection is not None or self._clock() < self._again:
            return
        try:
            self._connection = self._listening()
        except psycopg.Error as error:
            self._lost(error)
        else:
            self._pause.reset()

    def take(self) -> DirectMessage | None:
        """The oldest message that has come, or None."""
        if not self._came and self._connection is not None:
            try:
                for news in self._connection.notifies(timeout=0):
                    with suppress(ValueError):  # not a message of the service: any role that may connect can send one
                        self._came.append(DirectMessage(*attempt_of(news.payload)))
            except psycopg.Error as error:
                self._lost(error)
        return self._came.popleft() if self._came else None

    def close(self) -> None:
        """Stop listening, so that no more jobs are handed over directly."""
        if self._connection is not None:
            with suppress(psycopg.Error):
                self._connection.close()
            self._connection = None

    def _listening(self) -> psycopg.Connection[tuple[object, ...]]:
        connection = psycopg.connect(
            self._url,
            autocommit=True,
            connect_timeout=5,
            application_name=f"warpfold-{self._worker} notifications"[:63],
            **NOTICES_LOSS,
            # An earlier connection of this worker, which the network cut off, may hold the lock a little longer.
            options=f"-c lock_timeout=5s {LETS_GO}",
        )
        try:
            row = connection.execute(LISTEN, {"worker": self._worker}).fetchone()
            assert row is not None, "a select without a table has a row"
            connection.execute(sql.SQL("listen {}").format(sql.Identifier(str(row[1]))))
        except BaseException:
            connection.close()
            raise
        return connection

    def _lost(self, error: psycopg.Error) -> None:
        if not self._pause.failing:
            log.warning("jobs are not handed over directly", error=str(error).strip().split("\n")[0])
        self.close()
        self._again = self._clock() + self._pause.next()
