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
from warpfold.app.jobs.attempt import Lease
from warpfold.app.jobs.direct import LISTEN, SpecPiece, attempt_of
from warpfold.contract.backoff import Backoff

log: FilteringBoundLogger = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class DirectMessage:
    """An attempt that was handed over directly, and the unclaimed lease by which a child may begin `ahead` of the
    claim; None where the spec did not come with it."""

    job_id: UUID
    attempt: int
    ahead: Lease | None = None


class DirectMessages:
    """Listens for a worker, on a connection of its own. While it is connected, jobs may be handed to the worker
    directly. No method raises an error of the connection: without it, jobs come by the worker's queue."""

    def __init__(self, database_url: str, worker: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._url = conninfo(database_url)
        self._worker = worker
        self._clock = clock
        self._connection: psycopg.Connection[tuple[object, ...]] | None = None
        self._channel_of_specs = ""
        self._came: deque[DirectMessage] = deque()
        self._pieces: list[SpecPiece] = []  # of the spec of the job whose message comes next
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
                        self._take_in(news)
            except psycopg.Error as error:
                self._lost(error)
        return self._came.popleft() if self._came else None

    def _take_in(self, news: psycopg.Notify) -> None:
        if news.channel == self._channel_of_specs:
            piece = SpecPiece.of(news.payload)
            if piece.number == 1:
                self._pieces.clear()
            self._pieces.append(piece)
            return
        job_id, attempt = attempt_of(news.payload)
        pieces, self._pieces = self._pieces, []
        if pieces and all(piece.job_id == job_id for piece in pieces):
            spec = "".join(piece.text for piece in pieces)
            ahead = Lease.unclaimed(job_id, attempt, spec, pieces[0].request_id)
            self._came.append(DirectMessage(job_id, attempt, ahead))
        else:
            self._came.append(DirectMessage(job_id, attempt))

    def close(self) -> None:
        """Stop listening, so that no more jobs are handed over directly."""
        if self._connection is not None:
            with suppress(psycopg.Error):
                self._connection.close()
            self._connection = None
            self._pieces.clear()

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
            for channel in row[1:]:
                connection.execute(sql.SQL("listen {}").format(sql.Identifier(str(channel))))
            self._channel_of_specs = str(row[2])
        except BaseException:
            connection.close()
            raise
        return connection

    def _lost(self, error: psycopg.Error) -> None:
        if not self._pause.failing:
            log.warning("jobs are not handed over directly", error=str(error).strip().split("\n")[0])
        self.close()
        self._again = self._clock() + self._pause.next()
