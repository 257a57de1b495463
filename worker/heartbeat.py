"""Keeps a worker's row in the table of workers fresh, by a thread of its own, whether the worker is idle or busy."""

import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from threading import Event, Lock, Thread
from uuid import UUID

import structlog
from sqlalchemy.exc import SQLAlchemyError
from structlog.typing import FilteringBoundLogger

from warpfold.app.config import Settings
from warpfold.app.db import BlockingDatabase
from warpfold.app.jobs import workers
from warpfold.app.jobs.workers import WorkerInfo
from warpfold.app.metrics.counters import DroppedLines
from warpfold.worker.gauges import Gauges, gauges_of

log: FilteringBoundLogger = structlog.get_logger()

_STANDS_STILL_S = 30.0
"""A worker's loop that has not turned for this long stands still. Its longest wait on purpose takes seconds."""


class Heartbeat:
    """Reports a worker every few seconds, and at once when it becomes ready.

    A row that is not renewed expires after `lease_s`: the dispatcher then sends its waiting jobs elsewhere. A worker
    whose loop stands still is not reported, because this thread would go on for ever while no job runs.
    """

    def __init__(
        self,
        database: BlockingDatabase,
        settings: Settings,
        info: WorkerInfo,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._database = database
        self._lease_s = settings.lease_s
        self._every_s = max(settings.heartbeat_s, settings.lease_s / 5)
        self._lock = Lock()
        self._info = info
        self._job_id: UUID | None = None
        self._ready = False
        self._gauges: Gauges | None = None
        self._dropped = DroppedLines("worker")
        self._clock = clock
        self._turned = clock()
        self._stands_still_s = max(_STANDS_STILL_S, 2 * settings.lease_s)
        self._changed = Event()
        self._stopping = False
        self._thread = Thread(target=self._beat, name="heartbeat", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def ready(self, device: Mapping[str, object], rates: Mapping[str, object] | None = None) -> None:
        """Report at once that the child is warm, its `device`, and how fast the slot is, if that is known."""
        with self._lock:
            news = not self._ready or self._info.device != device or self._info.rates != rates
            self._info, self._ready = replace(self._info, device=device, rates=rates), True
            if self._gauges is None:
                uuid = device.get("uuid")
                self._gauges = gauges_of(self._info.backend, None if uuid is None else str(uuid))
                self._gauges.start()
        if news:
            self._changed.set()

    def show(self, job_id: UUID | None) -> None:
        """Note the running job, or None. The next beat reports it, which is soon enough for people who watch."""
        with self._lock:
            self._job_id = job_id

    def turned(self) -> None:
        """Note that the worker's loop has turned."""
        self._turned = self._clock()

    def turns(self) -> bool:
        """Note that the loop turns while it waits for a child; returns False, so that the wait goes on."""
        self.turned()
        return False

    def stop(self) -> None:
        """Report for the last time, with the state stopped."""
        self._stopping = True
        self._changed.set()
        self._thread.join(1.5)
        if self._gauges is not None:
            self._gauges.stop()

    def _beat(self) -> None:
        lost = still = False
        while True:
            last = self._stopping
            self._changed.clear()
            stood, still = still, not last and self._clock() - self._turned > self._stands_still_s
            if still and not stood:
                log.error("the loop of this worker stands still: it is not reported until it turns")
            try:
                if not still:
                    self._report(stopped=last)
            except SQLAlchemyError as error:
                if not lost:
                    log.warning("heartbeat not stored", error=str(error))
                lost = True
            else:
                lost = False
            if last:
                return
            self._changed.wait(self._every_s)

    def _report(self, *, stopped: bool) -> None:
        with self._lock:
            info, job_id, ready, gauges = self._info, self._job_id, self._ready, self._gauges
        if stopped:
            state = "stopped"
        elif not ready:
            state = "starting"
        else:
            state = "idle" if job_id is None else "running"
        reading = None if stopped or gauges is None else gauges.latest()
        self._database.step(workers.report, info, state, job_id, 0.0 if stopped else self._lease_s, reading=reading)
        if lines := self._dropped.uncounted():
            self._database.run(self._dropped.count, lines)
            self._dropped.counted(lines)
