"""What a receiver gets: the same bytes and the same id in every attempt, signed by the Standard Webhooks scheme."""

import base64
import json
import secrets
from datetime import datetime
from uuid import UUID

from standardwebhooks import Webhook

from warpfold.app.webhooks.repository import Ended
from warpfold.contract.webhook import SECRET_PREFIX

_SECRET_BYTES = 32


def message_id(job_id: UUID) -> str:
    """The `webhook-id` of a job's end: one job, one message."""
    return f"msg_{job_id.hex}"


def new_secret() -> str:
    """A secret of 256 random bits."""
    return SECRET_PREFIX + base64.b64encode(secrets.token_bytes(_SECRET_BYTES)).decode()


def body_of(job: Ended) -> str:
    """The message: `type`, `timestamp` and `data`. It is thin: the result is where the job's id leads."""
    data = {
        "id": str(job.id),
        "kind": job.kind,
        "status": job.status,
        "owner": job.owner,
        "tags": dict(job.tags),
        "attempt": job.attempt,
        "reason": job.reason,
        "error": job.error,
        "created_at": job.created_at.isoformat(),
        "started_at": None if job.started_at is None else job.started_at.isoformat(),
        "finished_at": job.finished_at.isoformat(),
    }
    message = {"type": f"job.{job.status}", "timestamp": job.finished_at.isoformat(), "data": data}
    return json.dumps(message, ensure_ascii=False, separators=(",", ":"))


def signed_headers(secret: str, job_id: UUID, body: str, now: datetime) -> dict[str, str]:
    """`webhook-id`, `webhook-timestamp` and `webhook-signature` of an attempt made `now` (UTC)."""
    name = message_id(job_id)
    return {
        "webhook-id": name,
        "webhook-timestamp": str(int(now.timestamp())),
        "webhook-signature": Webhook(secret).sign(name, now, body),
    }
