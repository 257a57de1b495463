"""The message to a receiver: the same bytes and the same id in every attempt, signed by the Standard Webhooks
scheme."""

import base64
import json
import secrets
from datetime import datetime
from uuid import UUID

from standardwebhooks import Webhook

from warpfold.app.webhooks.repository import Ended, EndedBatch
from warpfold.contract.webhook import SECRET_PREFIX

_SECRET_BYTES = 32


def message_id(ended_id: UUID) -> str:
    """The `webhook-id` of the end of a job or a batch: each has one message."""
    return f"msg_{ended_id.hex}"


def new_secret() -> str:
    """A secret of 256 random bits."""
    return SECRET_PREFIX + base64.b64encode(secrets.token_bytes(_SECRET_BYTES)).decode()


def body_of(ended: Ended | EndedBatch) -> str:
    """The message: `type`, `timestamp` and `data`. It is short: the receiver reads the result by the id."""
    what, data = ("batch", _batch(ended)) if isinstance(ended, EndedBatch) else ("job", _job(ended))
    data |= {
        "created_at": ended.created_at.isoformat(),
        "started_at": None if ended.started_at is None else ended.started_at.isoformat(),
        "finished_at": ended.finished_at.isoformat(),
    }
    message = {"type": f"{what}.{ended.status}", "timestamp": ended.finished_at.isoformat(), "data": data}
    return json.dumps(message, ensure_ascii=False, separators=(",", ":"))


def _job(job: Ended) -> dict[str, object]:
    return {
        "id": str(job.id),
        "kind": job.kind,
        "status": job.status,
        "owner": job.owner,
        "tags": dict(job.tags),
        "attempt": job.attempt,
        "reason": job.reason,
        "error": job.error,
    }


def _batch(batch: EndedBatch) -> dict[str, object]:
    return {
        "id": str(batch.id),
        "name": batch.name,
        "status": batch.status,
        "owner": batch.owner,
        "tags": dict(batch.tags),
        "count": batch.count,
        "succeeded": batch.succeeded,
        "failed": batch.failed,
        "cancelled": batch.cancelled,
    }


def signed_headers(secret: str, ended_id: UUID, body: str, now: datetime) -> dict[str, str]:
    """`webhook-id`, `webhook-timestamp` and `webhook-signature` of an attempt made `now` (UTC)."""
    name = message_id(ended_id)
    return {
        "webhook-id": name,
        "webhook-timestamp": str(int(now.timestamp())),
        "webhook-signature": Webhook(secret).sign(name, now, body),
    }
