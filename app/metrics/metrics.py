"""Everything at `/metrics`: the counts of this process, and the state of the service that Postgres holds."""

import asyncio
import time
from collections.abc import Iterator
from enum import Enum

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, Metric, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST
from prometheus_client.registry import Collector
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from warpfold.app.db import Database
from warpfold.app.metrics import counters
from warpfold.app.metrics.counters import DroppedLines
from warpfold.app.metrics.devices import device_states
from warpfold.app.metrics.families import device_families, ended_families, queue_families
from warpfold.app.metrics.monitoring import queue_state

_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)


class RequestCounts:
    """Counts and times requests by method, pattern of the route and status."""

    def __init__(self, registry: CollectorRegistry) -> None:
        labels = ("method", "route", "status")
        self._count = Counter("warpfold_http_requests", "Requests", labels, registry=registry)
        self._seconds = Histogram(
            "warpfold_http_request_seconds",
            "Time to the end of the answer; held requests included",
            labels,
            buckets=_BUCKETS,
            registry=registry,
        )

    def note(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count one request."""
        labels = (method, route, str(status))
        self._count.labels(*labels).inc()
        self._seconds.labels(*labels).observe(seconds)


class RequestTimes:
    """ASGI middleware that counts requests by their route's pattern, never by their path."""

    def __init__(self, app: ASGIApp, requests: RequestCounts) -> None:
        self._app = app
        self._requests = requests

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
            self._requests.note(method, route, status, time.perf_counter() - started)


class Ending(Enum):
    """Why a connection was ended or refused."""

    BAD_REQUEST = "bad_request"
    HEAD_TOO_LARGE = "head_too_large"
    HEAD_TOO_SLOW = "head_too_slow"
    BODY_TOO_SLOW = "body_too_slow"
    NOT_READ = "answer_not_read"
    REPLACED = "replaced_by_another"
    ADDRESS_FULL = "too_many_of_one_address"
    ALL_FULL = "too_many_in_all"


class ConnectionCounts:
    """`warpfold_http_connections` and `warpfold_http_connections_ended_total`."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.open = Gauge("warpfold_http_connections", "Open connections of clients", registry=registry)
        self._ended = Counter(
            "warpfold_http_connections_ended", "Connections ended or refused", ("reason",), registry=registry
        )
        for why in Ending:
            self._ended.labels(why.value)

    def ended(self, why: Ending) -> None:
        """Count a connection."""
        self._ended.labels(why.value).inc()


CONTENT_TYPE = CONTENT_TYPE_LATEST
_KEPT_S = 5.0
_OWN_KEPT_S = 0.5


class Metrics:
    """Counts requests and connections as they come. When scraped, it writes these counts at most twice a second, and
    reads the state of the service at most every five seconds."""

    def __init__(self) -> None:
        self._own = CollectorRegistry()
        self.requests = RequestCounts(self._own)
        self.connections = ConnectionCounts(self._own)
        self._state = b""
        self._state_until = 0.0
        self._written = b""
        self._own_until = 0.0
        self._reading = asyncio.Lock()
        self._dropped = DroppedLines("api")

    async def exposition(self, database: Database) -> bytes:
        """All metrics, in Prometheus' text format."""
        async with self._reading:
            if time.monotonic() > self._state_until:
                await self._count_dropped(database)
                self._state = await _state(database)
                self._state_until = time.monotonic() + _KEPT_S
            if time.monotonic() > self._own_until:
                self._written = generate_latest(self._own)
                self._own_until = time.monotonic() + _OWN_KEPT_S
            return self._written + self._state

    async def _count_dropped(self, database: Database) -> None:
        if lines := self._dropped.uncounted():
            await database.run(self._dropped.count, lines)
            self._dropped.counted(lines)


class _Families(Collector):
    def __init__(self, *families: Metric) -> None:
        self._families = families

    def collect(self) -> Iterator[Metric]:
        yield from self._families


async def _state(database: Database) -> bytes:
    queue = await database.read(queue_state)
    counts = await database.read(counters.read)
    devices = await database.read(device_states)
    registry = CollectorRegistry()
    registry.register(_Families(*queue_families(queue), *ended_families(counts), *device_families(devices)))
    return generate_latest(registry)
