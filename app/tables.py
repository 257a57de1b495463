"""Every table, so that `metadata` is whole. For migrations and tests; the code at work imports the one it needs."""

from app.auth.models import sessions, tokens, users
from app.counters.models import counters, uncounted_jobs
from app.datasets.models import datasets
from app.jobs.models import events, idempotency_keys, jobs, workers
from app.quotas.models import quota_holds, quotas
from app.results.models import measurements
from app.schema import metadata
from app.webhooks.models import webhook_attempts, webhook_secrets, webhooks

__all__ = [
    "counters",
    "datasets",
    "events",
    "idempotency_keys",
    "jobs",
    "measurements",
    "metadata",
    "quota_holds",
    "quotas",
    "sessions",
    "tokens",
    "uncounted_jobs",
    "users",
    "webhook_attempts",
    "webhook_secrets",
    "webhooks",
    "workers",
]
