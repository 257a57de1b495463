"""A queued job as the api shows it, for tests of clients that talk to no service."""

from typing import Any

JOB: dict[str, Any] = {
    "id": "5f0c",
    "kind": "reduce",
    "status": "queued",
    "owner": "ada",
    "attempt": 1,
    "reason": None,
    "error": None,
    "progress": {"done": 0, "total": 0, "unit": ""},
    "queue_position": 1,
    "created_at": "2026-11-21T00:00:00Z",
    "started_at": None,
    "finished_at": None,
    "result": None,
}
