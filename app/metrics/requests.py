"""Requests, as one api process has answered them since its start."""

import time

from prometheus_client import CollectorRegistry, Counter, Histogram
from starlette.types import ASGIApp, Message, Receive, Scope, Send

_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)


class Requests:
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


class Measured:
    """ASGI middleware that counts requests by their route's pattern, never by their path."""

    def __init__(self, app: ASGIApp, requests: Requests) -> None:
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
