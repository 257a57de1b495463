"""One LISTEN connection a process, fanned out to all who wait for a job.

A notification says "look again", or brings the outcome of one job that ended. A waiting request looks again at each
notification, and every second anyway, so that a lost notification costs a second and nothing else.
"""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from secrets import compare_digest
from uuid import UUID

import psycopg
import structlog

from warpfold.app.db import ACCESS, ENDED, JOB, LETS_GO, NOTICES_LOSS, OUTCOME, conninfo
from warpfold.app.fairness.turns import give_up_turn
from warpfold.contract.backoff import Backoff

LOOK_AGAIN_S = 1.0

log = structlog.get_logger("notifications")


class Watch:
    """A request that waits for changes of one job, or with `for_end` for its end alone. `outcome` is what a message
    with the `secret` of the request says about that end."""

    def __init__(self, *, for_end: bool, secret: UUID | None = None) -> None:
        self.for_end = for_end
        self.secret = secret
        self.outcome: str | None = None
        self._changed = asyncio.Event()

    def tell(self) -> None:
        self._changed.set()

    async def wait(self, timeout_s: float) -> None:
        """Return at the first notification since the last call, or after `timeout_s`, at most a second. Then look."""
        give_up_turn()
        with suppress(TimeoutError):
            async with asyncio.timeout(min(timeout_s, LOOK_AGAIN_S)):
                await self._changed.wait()
        self._changed.clear()


class Notifications:
    """Listens until closed; reconnects by itself. `on_access` is called when tokens may have changed."""

    def __init__(self, database_url: str, on_access: Callable[[], None]) -> None:
        self._url = conninfo(database_url)
        self._on_access = on_access
        self._watches: dict[str, set[Watch]] = {}
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin to listen, in the running event loop."""
        self._task = asyncio.create_task(self._run(), name="notifications")

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task

    @contextmanager
    def watch(self, job_id: object, *, for_end: bool = False, secret: UUID | None = None) -> Iterator[Watch]:
        """Hear of changes of a job from now on, or `for_end` of its end alone: watch first, then look, then wait. Who
        watches a job before it is accepted need not look first."""
        key = str(job_id)
        watch = Watch(for_end=for_end, secret=secret)
        self._watches.setdefault(key, set()).add(watch)
        try:
            yield watch
        finally:
            watches = self._watches[key]
            watches.discard(watch)
            if not watches:
                del self._watches[key]

    async def _run(self) -> None:
        backoff = Backoff()
        while True:
            try:
                connection = await psycopg.AsyncConnection.connect(
                    self._url,
                    autocommit=True,
                    connect_timeout=5,
                    application_name="warpfold api notifications",
                    options=LETS_GO,
                    **NOTICES_LOSS,
                )
                try:
                    await self._listen(connection, backoff)
                finally:  # at the end of `async with` psycopg rolls back first: cancelled there, it leaves it open
                    await connection.close()
            except psycopg.Error as error:
                if not backoff.failing:
                    log.warning("listening was interrupted", error=str(error).strip().split("\n")[0])
            self._tell_all()
            await asyncio.sleep(backoff.next())

    async def _listen(self, connection: psycopg.AsyncConnection[tuple[object, ...]], backoff: Backoff) -> None:
        for channel in (JOB, OUTCOME, ENDED, ACCESS):
            await connection.execute(f"listen {channel}")
        backoff.reset()
        self._tell_all()  # notifications may have been missed before
        while True:
            async for notification in connection.notifies(timeout=0):
                self._tell(notification.channel, notification.payload)
            await _readable(connection.fileno())

    def _tell(self, channel: str, payload: str) -> None:
        if channel == ACCESS:
            self._tell_all()  # a held request may no longer be allowed
        if channel == OUTCOME:
            job_id, _, message = payload.partition(" ")
            secret, _, outcome = message.partition(" ")
            for watch in self._watches.get(job_id, ()):
                if watch.secret is not None and compare_digest(str(watch.secret).encode(), secret.encode()):
                    watch.outcome = outcome  # the news that the job has ended comes next
            return
        for job_id in payload.split(","):
            for watch in self._watches.get(job_id, ()):
                if channel == ENDED or not watch.for_end:
                    watch.tell()

    def _tell_all(self) -> None:
        self._on_access()
        for watches in self._watches.values():
            for watch in watches:
                watch.tell()


async def _readable(number: int) -> None:
    """Wait until the file of this number can be read. psycopg would wake up ten times a second meanwhile."""
    loop = asyncio.get_running_loop()
    event = asyncio.Event()
    loop.add_reader(number, event.set)
    try:
        await event.wait()
    finally:
        loop.remove_reader(number)
