"""Work that nobody waits for: old rows are removed, jobs are counted, and the priority of waiting jobs rises.

It goes on in a thread of the dispatcher's process, with a connection of its own and in small portions, each followed by
a pause as long as it took: however much there is to do, no hand-over waits for it.
"""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta

import structlog
from psycopg.errors import LockNotAvailable
from sqlalchemy.exc import OperationalError, SQLAlchemyError
from structlog.typing import FilteringBoundLogger

from warpfold.app import census
from warpfold.app.admin.removal import forget_removed
from warpfold.app.artefacts import repository as artefacts
from warpfold.app.artefacts.store import ArtefactStore
from warpfold.app.auth import audit
from warpfold.app.batches import transitions as batches
from warpfold.app.census import RecordSpan
from warpfold.app.config import Settings
from warpfold.app.datasets.store import Store
from warpfold.app.datasets.sweep import tidy
from warpfold.app.db import BlockingDatabase
from warpfold.app.jobs import tags, transitions
from warpfold.app.metrics.counters import count_ended
from warpfold.contract.backoff import Backoff

log: FilteringBoundLogger = structlog.get_logger()

_SOON_S = 2.0
_RAISE_S = 10.0
_HOUR_S = 3600.0
_SHARE_OF_CENSUS = 0.02
_COUNTED = 500  # jobs a transaction
_RAISED = 500
_REMOVED = 200
_SETTLED = 50
_SWEPT = 1000


@dataclass
class _Duty:
    """A duty: some work that is done again and again. `work` does a portion of it, and returns whether more is left to
    do."""

    every_s: float
    work: Callable[[], bool]
    share: float = 0.5  # the largest share of the time that the duty may take
    next: float = 0.0


class Housekeeping:
    """Every dispatcher does this work, whether it leads or not. Several may do it at the same time without harm,
    because each row is locked by one of them."""

    def __init__(self, settings: Settings, database: BlockingDatabase) -> None:
        self._settings = settings
        self._database = database
        self._older_than = timedelta(days=settings.retention_days)
        self._swept_to: tuple[str, int] | None = None
        self._recorded: RecordSpan | None = None
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="housekeeping", daemon=True)
        self._duties = (
            _Duty(_SOON_S, self._count),
            _Duty(_RAISE_S, self._raise),
            _Duty(_SOON_S, self._settle_batches),
            _Duty(_SOON_S, self._take_census, share=_SHARE_OF_CENSUS),
            _Duty(_HOUR_S, self._remove_jobs),
            _Duty(_HOUR_S, self._remove_batches),
            _Duty(_HOUR_S, self._forget_users),
            _Duty(_HOUR_S, self._remove_audit),
            _Duty(_HOUR_S, self._remove_keys),
            _Duty(_HOUR_S, self._sweep_tags),
            _Duty(_HOUR_S, self._tidy_datasets),
            _Duty(_HOUR_S, self._tidy_artefacts),
        )

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Begin no further portion, and wait for the running portion, though not for long."""
        self._stopping.set()
        self._thread.join(2.0)

    def look(self) -> float:
        """Do a portion of each duty that is due, and return the seconds until the next duty is due.

        Raises SQLAlchemyError where Postgres does not serve.
        """
        for duty in self._duties:
            started = time.monotonic()
            if started >= duty.next and not self._stopping.is_set():
                more = duty.work()
                now = time.monotonic()
                pause = (now - started) * (1 / duty.share - 1)
                duty.next = now + (pause if more else max(pause, duty.every_s))
        return max(0.0, min(duty.next for duty in self._duties) - time.monotonic())

    def _run(self) -> None:
        lost = Backoff()
        while not self._stopping.is_set():
            try:
                pause = self.look()
                lost.reset()
            except SQLAlchemyError as error:  # Postgres is away, or not migrated yet
                if not lost.failing:
                    log.warning("housekeeping waits for Postgres", error=str(error).strip())
                pause = lost.next()
            self._stopping.wait(pause)

    def _count(self) -> bool:
        return self._database.run(count_ended, _COUNTED) == _COUNTED

    def _take_census(self) -> bool:
        self._recorded = self._database.run(census.take, self._recorded)
        return False

    def _raise(self) -> bool:
        return self._database.run(transitions.raise_waiting, self._settings.raise_priority_after_s, _RAISED) > 0

    def _remove_jobs(self) -> bool:
        count = self._database.run(transitions.remove_old, self._older_than, _REMOVED)
        if count:
            log.info("removed old jobs", count=count)
        return count == _REMOVED

    def _settle_batches(self) -> bool:
        return self._database.run(batches.settle, _SETTLED) == _SETTLED

    def _remove_batches(self) -> bool:
        return self._database.run(batches.remove_old, self._older_than, _REMOVED) == _REMOVED

    def _forget_users(self) -> bool:
        self._database.run(forget_removed)
        return False

    def _remove_audit(self) -> bool:
        return self._database.run(audit.remove_old, timedelta(days=self._settings.audit_days), _REMOVED) == _REMOVED

    def _remove_keys(self) -> bool:
        return self._database.run(transitions.remove_old_keys, self._older_than, _REMOVED) == _REMOVED

    def _sweep_tags(self) -> bool:
        try:
            self._swept_to = self._database.run(tags.sweep, self._swept_to or tags.BEGINNING, _SWEPT)
        except OperationalError as error:
            if not isinstance(error.orig, LockNotAvailable):
                raise
            return True  # a submission uses the table, so try again soon
        return self._swept_to is not None

    def _tidy_datasets(self) -> bool:
        unused_for = timedelta(days=self._settings.dataset_retention_days)
        try:
            if count := tidy(self._database, Store(self._settings.datasets_dir()), unused_for):
                log.info("removed datasets that nobody holds", count=count)
        except OSError as error:
            log.warning("datasets cannot be tidied", error=str(error))
        return False

    def _tidy_artefacts(self) -> bool:
        store = ArtefactStore(self._settings.artefacts_dir())
        older_than = timedelta(days=self._settings.artefact_retention_days)
        try:
            if count := artefacts.tidy(self._database, store, older_than):
                log.info("removed stored results", count=count)
        except OSError as error:
            log.warning("stored results cannot be tidied", error=str(error))
        return False
