"""Makes one attempt to deliver one message, notes the outcome, and decides when to try again."""

import asyncio
import random
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from functools import partial
from importlib.metadata import version
from typing import Concatenate, ParamSpec, TypeVar

import structlog
from sqlalchemy import Connection
from structlog.typing import FilteringBoundLogger

from warpfold.app.db import DATABASE_LOST, BlockingDatabase
from warpfold.app.webhooks import repository
from warpfold.app.webhooks.message import body_of, signed_headers
from warpfold.app.webhooks.repository import Claimed, EndedBatch
from warpfold.worker.webhooks.transport import AddressRefused, Transport, Unreachable

log: FilteringBoundLogger = structlog.get_logger()

NOTE_WITHIN_S = 10.0
"""How long an outcome is kept while Postgres cannot be reached. After that the message is sent again."""

DAY: Sequence[float] = (5.0, 60.0, 300.0, 1800.0, 7200.0, 18000.0, 28800.0, 28800.0)
"""Seconds after each failure: nine attempts within a day."""

_JITTER = 0.2
_GONE = 410  # by Standard Webhooks, the receiver wants no more messages

P = ParamSpec("P")
T = TypeVar("T")


class Outbox:
    """Runs units of work on threads of its own, so that the loop never waits for Postgres."""

    def __init__(self, database: BlockingDatabase, threads: ThreadPoolExecutor) -> None:
        self._database = database
        self._threads = threads

    async def run(self, work: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """`BlockingDatabase.run`"""
        return await self._on_a_thread(partial(self._database.run, work, *args, **kwargs))

    async def run_patiently(
        self, patience_s: float, work: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """`BlockingDatabase.run_patiently`"""
        return await self._on_a_thread(partial(self._database.run_patiently, patience_s, work, *args, **kwargs))

    async def _on_a_thread(self, call: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._threads, call)


async def deliver(outbox: Outbox, transport: Transport, schedule: Sequence[float], claimed: Claimed) -> None:
    """Post the message. Note that it was delivered, or why it was not and when to try again."""
    what = "batch" if isinstance(claimed.ended, EndedBatch) else "job"
    fields = {what: str(claimed.ended.id), "number": claimed.number}
    status: int | None = None
    again = pause_after(claimed.number, schedule)
    try:
        status = await _post(transport, claimed)
        why = f"the receiver answered {status}"
        again = None if status == _GONE else again
    except Unreachable as error:
        why = str(error)
    except AddressRefused as error:
        why, again = str(error), None
    except Exception as error:
        # Any error counts as an attempt: a message that cannot be made must not be tried for ever.
        log.error("a webhook cannot be sent", exc_info=error, **fields)
        why = "the service failed over it; its log has the details"
    try:
        if status is not None and 200 <= status < 300:
            await outbox.run_patiently(NOTE_WITHIN_S, repository.delivered, claimed, status)
            log.info("webhook delivered", **fields)
        else:
            await outbox.run_patiently(NOTE_WITHIN_S, repository.failed, claimed, status, why, again)
            log.warning("webhook given up" if again is None else "webhook not delivered", why=why, **fields)
    except DATABASE_LOST as error:
        log.warning("what came of a webhook is not noted; it is due again", error=str(error).strip(), **fields)


async def _post(transport: Transport, claimed: Claimed) -> int:
    body = body_of(claimed.ended)
    headers = {
        "content-type": "application/json",
        "user-agent": f"warpfold/{version('warpfold')}",
        **signed_headers(claimed.secret, claimed.ended.id, body, datetime.now(UTC)),
    }
    return await transport.post(claimed.owner_id, claimed.url, headers, body.encode())


def pause_after(number: int, schedule: Sequence[float] = DAY) -> float | None:
    """How many seconds to wait after the failure of attempt `number` (from 1); None after the last attempt.

    It varies by up to a fifth, so that messages that failed together are not sent again together.
    """
    if number > len(schedule):
        return None
    return schedule[number - 1] * random.uniform(1 - _JITTER, 1 + _JITTER)  # noqa: S311 (no secret)
