"""Prometheus metrics of an api process."""

import asyncio
import time

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.db import Database
from app.monitoring import QueueState, queue_state

CONTENT_TYPE = CONTENT_TYPE_LATEST
_QUEUE_KEPT_S = 5.0
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)


class Metrics:
    """Counts requests as they come; reads the state of the queue when scraped, at most every five seconds."""

    def __init__(self) -> None:
        self._queue: QueueState | None = None
        self._queue_until = 0.0
        self._reading = asyncio.Lock()
        self._registry = CollectorRegistry()
        self._requests = Counter(
            "warpfold_http_requests", "Requests", ("method", "route", "status"), registry=self._registry
        )
        self._seconds = Histogram(
            "warpfold_http_request_seconds",
            "Time to the end of the answer; held requests included",
            ("method", "route"),
            buckets=_BUCKETS,
            registry=self._registry,
        )

    def request(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count one request."""
        self._requests.labels(method, route, str(status)).inc()
        self._seconds.labels(method, route).observe(seconds)

    async def exposition(self, database: Database) -> bytes:
        """Everything, in Prometheus' text format."""
        async with self._reading:
            if self._queue is None or time.monotonic() > self._queue_until:
                self._queue = await database.search(queue_state)
                self._queue_until = time.monotonic() + _QUEUE_KEPT_S
            queue = self._queue
        return generate_latest(self._registry) + generate_latest(_registry_of(queue))


def _registry_of(queue: QueueState) -> CollectorRegistry:
    registry = CollectorRegistry()
    depth = Gauge("warpfold_queue_depth", "Jobs that wait", ("priority",), registry=registry)
    for priority, count in queue.depth.items():
        depth.labels(priority).set(count)
    Gauge("warpfold_queue_oldest_seconds", "Age of the job that has waited longest", registry=registry).set(
        queue.oldest_s
    )
    jobs = Gauge("warpfold_jobs", "Jobs on record by status and reason", ("status", "reason"), registry=registry)
    for one in queue.jobs:
        jobs.labels(one.status, one.reason or "").set(one.count)
    workers = Gauge("warpfold_workers", "Workers by state", ("backend", "state"), registry=registry)
    for worker in queue.workers:
        workers.labels(worker.backend, worker.state).set(worker.count)
    held = Gauge("warpfold_quota_held_users", "Users whose jobs wait for a quota", ("quota",), registry=registry)
    for quota, count in queue.held.items():
        held.labels(quota).set(count)
    Gauge("warpfold_webhooks_due", "Messages of ended jobs that are not delivered", registry=registry).set(
        queue.webhooks_due
    )
    return registry


class Measured:
    """ASGI middleware that counts requests by their route's pattern, never by their path."""

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self._app = app
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        status = 500
        started = time.perf_counter()

        async def noting(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self._app(scope, receive, noting)
        finally:
            route = getattr(scope.get("route"), "path", "none")
            method = scope["method"] if scope["method"] in _METHODS else "other"
            self._metrics.request(method, route, status, time.perf_counter() - started)
