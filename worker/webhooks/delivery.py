"""One attempt to deliver one message, from its claim to the note of what came of it."""

from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.metadata import version

import structlog
from structlog.typing import FilteringBoundLogger

from warpfold.app.db import DATABASE_LOST
from warpfold.app.webhooks import repository
from warpfold.app.webhooks.message import body_of, signed_headers
from warpfold.app.webhooks.repository import Claimed
from warpfold.worker.webhooks.outbox import Outbox
from warpfold.worker.webhooks.schedule import pause_after
from warpfold.worker.webhooks.transport import AddressRefused, Transport, Unreachable

log: FilteringBoundLogger = structlog.get_logger()

NOTE_WITHIN_S = 10.0
"""How long an outcome is kept for a Postgres that is away. After that the message is sent again."""

_GONE = 410  # by the scheme, a receiver's wish to be left alone


async def deliver(outbox: Outbox, transport: Transport, schedule: Sequence[float], claimed: Claimed) -> None:
    """Post the message, and note that it was delivered, or when to try again and why."""
    facts = {"job": str(claimed.job.id), "number": claimed.number}
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
        # Whatever it is, it counts as an attempt: a message that cannot be made must not come back for ever.
        log.error("a webhook cannot be sent", exc_info=error, **facts)
        why = "the service failed over it; its log has the details"
    try:
        if status is not None and 200 <= status < 300:
            await outbox.run_patiently(NOTE_WITHIN_S, repository.delivered, claimed, status)
            log.info("webhook delivered", **facts)
        else:
            await outbox.run_patiently(NOTE_WITHIN_S, repository.failed, claimed, status, why, again)
            log.warning("webhook given up" if again is None else "webhook not delivered", why=why, **facts)
    except DATABASE_LOST as error:
        log.warning("what came of a webhook is not noted; it is due again", error=str(error).strip(), **facts)


async def _post(transport: Transport, claimed: Claimed) -> int:
    body = body_of(claimed.job)
    headers = {
        "content-type": "application/json",
        "user-agent": f"warpfold/{version('warpfold')}",
        **signed_headers(claimed.secret, claimed.job.id, body, datetime.now(UTC)),
    }
    return await transport.post(claimed.owner_id, claimed.url, headers, body.encode())
