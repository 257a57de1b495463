"""Every table, so that `metadata` is whole. For migrations and tests; the code at work imports the one it needs."""

from app.auth.models import tokens, users
from app.jobs.models import events, idempotency_keys, jobs, workers
from app.results.models import measurements
from app.schema import metadata

__all__ = ["events", "idempotency_keys", "jobs", "measurements", "metadata", "tokens", "users", "workers"]
