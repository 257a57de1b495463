"""Everything at `/metrics`."""

import asyncio
import time
from collections.abc import Iterator

from prometheus_client import CollectorRegistry, Metric, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST
from prometheus_client.registry import Collector

from warpfold.app.db import Database
from warpfold.app.metrics import counters
from warpfold.app.metrics.connections import ConnectionCounts
from warpfold.app.metrics.devices import device_families, device_states
from warpfold.app.metrics.dropped import DroppedLines
from warpfold.app.metrics.families import ended_families
from warpfold.app.metrics.monitoring import queue_state
from warpfold.app.metrics.queue import queue_families
from warpfold.app.metrics.requests import Requests

CONTENT_TYPE = CONTENT_TYPE_LATEST
_KEPT_S = 5.0


class Metrics:
    """Counts requests and connections as they come; reads the state of the service when scraped, at most every five
    seconds."""

    def __init__(self) -> None:
        self._own = CollectorRegistry()
        self.requests = Requests(self._own)
        self.connections = ConnectionCounts(self._own)
        self._state = b""
        self._state_until = 0.0
        self._reading = asyncio.Lock()
        self._dropped = DroppedLines("api")

    async def exposition(self, database: Database) -> bytes:
        """Everything, in Prometheus' text format."""
        async with self._reading:
            if time.monotonic() > self._state_until:
                await self._count_dropped(database)
                self._state = await _state(database)
                self._state_until = time.monotonic() + _KEPT_S
            state = self._state
        return generate_latest(self._own) + state

    async def _count_dropped(self, database: Database) -> None:
        if lines := self._dropped.uncounted():
            await database.run(self._dropped.count, lines)
            self._dropped.counted(lines)


class _Found(Collector):
    def __init__(self, *families: Metric) -> None:
        self._families = families

    def collect(self) -> Iterator[Metric]:
        yield from self._families


async def _state(database: Database) -> bytes:
    queue = await database.search(queue_state)
    counts = await database.read(counters.read)
    devices = await database.read(device_states)
    registry = CollectorRegistry()
    registry.register(_Found(*queue_families(queue), *ended_families(counts), *device_families(devices)))
    return generate_latest(registry)
