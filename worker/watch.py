"""Finds jobs that are overdue and workers that are lost, by how long the leader has seen them unchanged. The leader
judges by its own clock, and counts only time in which Postgres answered (`worker.silence`). A clock that steps, or a
server that stalls, takes no job from a worker that lives.
"""

import time
from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

import structlog
from structlog.typing import FilteringBoundLogger

from warpfold.app.config import Settings
from warpfold.app.db import BlockingDatabase
from warpfold.app.jobs import losses, queue
from warpfold.app.jobs.losses import Running
from warpfold.app.jobs.queue import HandOver
from warpfold.contract.needs import KINDS
from warpfold.contract.states import Loss
from warpfold.worker.silence import Clock, SilenceDetector

log: FilteringBoundLogger = structlog.get_logger()

_Delivery = tuple[UUID, int, str, datetime | None]
_Attempt = tuple[UUID, UUID]


class Watch:
    """Watches for one dispatcher, as long as it keeps its session in Postgres. It watches the running attempts even
    while its dispatcher stands by. A machine may be lost together with the leader and with workers on it. Their jobs
    must not wait first for another leader and then for the time of a lease."""

    def __init__(self, settings: Settings, database: BlockingDatabase, clock: Clock = time.monotonic) -> None:
        self._settings = settings
        self._database = database
        # Workers report themselves five times in the time of a lease.
        longest_s = max(settings.lease_s / 5, 2 * settings.dispatch_interval_s)
        self._workers = SilenceDetector[_Attempt](longest_s, clock)
        self._messages = SilenceDetector[_Delivery](longest_s, clock)
        self._kinds = SilenceDetector[str](longest_s, clock)

    def see_running(self) -> Sequence[Running]:
        """Look which running attempts have been renewed. This changes nothing in Postgres."""
        running = self._database.step(losses.running_attempts)
        self._workers.look({(attempt.job_id, attempt.token): attempt.renewed_until for attempt in running})
        return running

    def take_back_lost(self) -> None:
        """End the attempts whose workers have not renewed their leases for `lease_s`."""
        running = self.see_running()
        silent = self._workers.lasting(self._settings.lease_s)
        if not silent:
            return
        self._take_back(
            [each for each in running if silent.get((each.job_id, each.token)) is False], Loss.LEASE_EXPIRED
        )
        self._take_back([each for each in running if silent.get((each.job_id, each.token))], Loss.INTERRUPTED)

    def fail_unservable(self) -> None:
        """Fail the jobs that wait for a kind of slot that nobody has served for `unavailable_after_s`."""
        after_s = self._settings.unavailable_after_s
        offered = self._database.step(queue.offered)
        self._kinds.look({kind: None for kind in KINDS if kind not in offered})
        missing = self._kinds.lasting(after_s)
        if missing:
            for job_id in self._database.run(queue.fail_unservable, sorted(missing), after_s):
                log.warning("failed: no worker can take it", job=str(job_id))

    def overdue(self, within_s: float) -> list[HandOver]:
        """The jobs that were handed over at least `within_s` ago and have not been claimed."""
        handed = self._database.step(queue.handed_over)
        self._messages.look(dict.fromkeys(map(_delivery, handed)))
        return self._old(handed, within_s)

    def stuck(self, within_s: float, long: int, small: int) -> list[HandOver]:
        """Overdue jobs that wait behind a running job although another slot has room: at most `long` that run alone,
        and at most `small` small ones. Call `overdue` first."""
        waiting = self._old(self._database.step(queue.stuck), within_s)
        return [
            *[message for message in waiting if not message.small][:long],
            *[message for message in waiting if message.small][:small],
        ]

    def _old(self, handed: Sequence[HandOver], within_s: float) -> list[HandOver]:
        old = self._messages.lasting(within_s)
        return [message for message in handed if _delivery(message) in old]

    def _take_back(self, silent: list[Running], why: Loss) -> None:
        if silent:
            for job_id in self._database.run(losses.take_back_silent, silent, self._settings.max_losses, why):
                log.warning("taken back", job=str(job_id), why=why.value)


def _delivery(message: HandOver) -> _Delivery:
    return message.job_id, message.attempt, message.worker, message.at
