"""Postgres notification channels. A payload is only a hint to look; nothing depends on its arrival."""

QUEUE = "warpfold_queue"  # something to dispatch, or room in a slot; no payload
JOB = "warpfold_job"  # payload: the id of a job whose row changed
ACCESS = "warpfold_access"  # a token was revoked, or a role changed; no payload
