"""Every table, so that `metadata` is whole. For migrations and tests; the code at work imports the one it needs."""

from warpfold.app.auth.models import sessions, tokens, users
from warpfold.app.counters.models import counters, uncounted_jobs
from warpfold.app.datasets.models import datasets
from warpfold.app.jobs.models import events, idempotency_keys, jobs, turns, workers
from warpfold.app.lead.models import lead
from warpfold.app.quotas.models import quota_holds, quotas
from warpfold.app.results.models import measurements
from warpfold.app.schema import metadata
from warpfold.app.webhooks.models import webhook_attempts, webhook_secrets, webhooks

__all__ = [
    "counters",
    "datasets",
    "events",
    "idempotency_keys",
    "jobs",
    "lead",
    "measurements",
    "metadata",
    "quota_holds",
    "quotas",
    "sessions",
    "tokens",
    "turns",
    "uncounted_jobs",
    "users",
    "webhook_attempts",
    "webhook_secrets",
    "webhooks",
    "workers",
]
