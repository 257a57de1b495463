"""Delivers the messages in the outbox of webhooks.

A claimed attempt has a number of its own and a time after which the next attempt is due. So several senders may run,
and any may be killed: the receiver then gets the message again, with the same id.
"""

import asyncio
import threading
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import structlog
from sqlalchemy.exc import SQLAlchemyError
from structlog.typing import FilteringBoundLogger

from warpfold.app.config import Settings
from warpfold.app.db import BlockingDatabase
from warpfold.app.webhooks import repository
from warpfold.app.webhooks.repository import Claimed
from warpfold.contract.backoff import Backoff
from warpfold.worker.webhooks.delivery import DAY, NOTE_WITHIN_S, Outbox, deliver
from warpfold.worker.webhooks.lookups import Lookups
from warpfold.worker.webhooks.transport import Transport

log: FilteringBoundLogger = structlog.get_logger()

_AT_ONCE = 64
_QUIET = 4  # how many times as long it waits while no job is reported to end; then only repetitions are due
_OF_ONE_OWNER = 8  # so that one user's hanging receiver leaves the others their turns


class Sender:
    """A thread with an event loop of its own. A receiver that is slow or fails holds up its own messages alone."""

    def __init__(self, settings: Settings, *, schedule: Sequence[float] = DAY) -> None:
        self._settings = settings
        self._schedule = schedule
        self._lease_s = settings.webhook_timeout_s + NOTE_WITHIN_S
        self._under_way: dict[asyncio.Task[None], int] = {}  # the running tasks and their owners
        self._stopping = asyncio.Event()
        self._news = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread = threading.Thread(target=self._run, name="webhooks", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Claim no more messages, and break off the running deliveries, which are due again later."""
        while self._thread.is_alive() and self._loop is None:
            self._thread.join(0.01)  # the thread has only just begun
        if self._loop is not None:
            with suppress(RuntimeError):  # the loop has ended by itself
                self._loop.call_soon_threadsafe(self._stopping.set)
                self._loop.call_soon_threadsafe(self._news.set)
        self._thread.join(2.0)

    def wake(self) -> None:
        """Tell the sender that jobs may have ended. Otherwise a message may wait `_QUIET` times as long."""
        if self._loop is not None:
            with suppress(RuntimeError):  # it has ended
                self._loop.call_soon_threadsafe(self._news.set)

    def _run(self) -> None:
        database = BlockingDatabase(self._settings.database_url, application="warpfold-webhooks")
        try:
            with ThreadPoolExecutor(2, "webhooks-postgres") as threads:
                asyncio.run(self._serve(Outbox(database, threads)))
        finally:
            database.close()

    async def _serve(self, outbox: Outbox) -> None:
        """Deliver until a stop is requested. The loop survives times in which Postgres cannot be reached."""
        self._loop = asyncio.get_running_loop()
        transport = Transport(
            Lookups().resolve,
            allow_private=self._settings.webhook_allow_private,
            timeout_s=self._settings.webhook_timeout_s,
        )
        lost = Backoff()
        while not self._stopping.is_set():
            pause = self._settings.dispatch_interval_s
            self._news.clear()
            try:
                while len(self._under_way) < _AT_ONCE and (claimed := await self._claim(outbox)) is not None:
                    task = asyncio.create_task(deliver(outbox, transport, self._schedule, claimed))
                    self._under_way[task] = claimed.owner_id
                    task.add_done_callback(self._done)
                lost.reset()
            except SQLAlchemyError as error:  # away, or not migrated yet
                if not lost.failing:
                    log.warning("the outbox of webhooks cannot be read", error=str(error).strip())
                pause = lost.next()
            await _within(pause, self._stopping)
            if not lost.failing and not self._stopping.is_set():
                await _within((_QUIET - 1) * pause, self._news)
        for task in self._under_way:
            task.cancel()

    async def _claim(self, outbox: Outbox) -> Claimed | None:
        busy = [owner for owner, count in Counter(self._under_way.values()).items() if count >= _OF_ONE_OWNER]
        return await outbox.run(repository.claim, busy, self._lease_s)

    def _done(self, task: asyncio.Task[None]) -> None:
        del self._under_way[task]
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("a delivery broke off; it is due again", exc_info=error)


async def _within(seconds: float, event: asyncio.Event) -> None:
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await event.wait()
