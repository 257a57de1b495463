"""Moves queued jobs from Postgres to the queues of the slots, and takes back jobs that were lost on the way. Redis is
never believed: a job that was handed over, and then neither waits in its queue nor was claimed, is handed over again.
An attempt that is delivered twice is claimed once.
"""

import argparse
import secrets
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from uuid import UUID

import psycopg
import structlog
from redis import RedisError
from sqlalchemy import Connection
from structlog.typing import FilteringBoundLogger

from warpfold.app import logs
from warpfold.app.config import Settings, load_settings
from warpfold.app.db import DATABASE_LOST, FREED, BlockingDatabase
from warpfold.app.jobs import presets, queue, turns
from warpfold.app.jobs.dispatch_state import ANY_NUMBER, Depth, OpenSlot
from warpfold.app.jobs.queue import HandOver
from warpfold.app.metrics.counters import DroppedLines
from warpfold.app.quotas import holds
from warpfold.app.quotas.quota import Limits
from warpfold.app.tracing.tracing import NoTracing, Tracing, start_tracing
from warpfold.contract.backoff import Backoff
from warpfold.worker.housekeeping import Housekeeping
from warpfold.worker.leadership import Leadership, LeadLost
from warpfold.worker.queue import AttemptQueues, connect, rq_id
from warpfold.worker.silence import Clock
from warpfold.worker.stop import Stop
from warpfold.worker.watch import Watch
from warpfold.worker.webhooks.sender import Sender

log: FilteringBoundLogger = structlog.get_logger()

_HOLDS_EVERY_S = 2.0
_LOOK_EVERY_S = 1.0
"""How often a dispatcher that stands by looks which leases are renewed."""
_JUST_FREED = frozenset({FREED})
_LEISURE_S = 0.02
"""The pause after the end of a job while none waits: those who answer the job's client have the processor first."""
_IDLE = 8
"""How many times as long the rounds of an idle service take: where no job waits or runs, the passing of time changes
nothing."""


class Dispatcher:
    """The loop of the leader. Other dispatchers stand by, and one of them takes over when it ends or falls silent.

    Losses and delays are judged by `clock`. `news` is called after each round in which jobs may have ended.
    """

    def __init__(
        self,
        settings: Settings,
        database: BlockingDatabase,
        queues: AttemptQueues,
        stop: Stop,
        tracing: Tracing | None = None,
        *,
        clock: Clock = time.monotonic,
        news: Callable[[], None] = lambda: None,
    ) -> None:
        self._settings = settings
        self._tracing = tracing or NoTracing()
        self._database = database
        self._queues = queues
        self._stop = stop
        self._news = news
        self._grace_s = max(1.0, 4 * settings.dispatch_interval_s)  # for this long a message counts as on its way
        self._clock = clock
        self._watch = Watch(settings, database, clock)
        self._redis = Backoff()
        self._redis_again = 0.0
        self._next_holds = 0.0
        self._dropped = DroppedLines("dispatcher")
        self._limits = Limits.of(settings)
        self._depth = Depth(settings.prefetch, settings.prefetch_small)
        self._max_running = ANY_NUMBER if self._limits.running is None else self._limits.running

    def run(self) -> None:
        """Lead, or stand by, until asked to stop. Survives the absence of Postgres and of Redis."""
        postgres = Backoff()
        while not self._stop.requested:
            try:
                with Leadership(
                    self._settings.database_url, self._database.application, self._settings.lead_s
                ) as session:
                    postgres.reset()
                    self._watch = Watch(self._settings, self._database, self._clock)
                    self._stand_by(session)
                    self._lead(session)
            except LeadLost:
                log.warning("another dispatcher has taken the lead")
            except (psycopg.OperationalError, *DATABASE_LOST) as error:
                if not postgres.failing:
                    log.warning("Postgres is lost, or the lead", error=str(error).strip())
                self._stop.wait(postgres.next())

    def _stand_by(self, session: Leadership) -> None:
        if not session.won():
            log.info("standing by: another dispatcher leads")
            pause_s = min(self._settings.dispatch_interval_s, self._settings.lead_s / 10)
            next_look = 0.0
            while not self._stop.wait(pause_s) and not session.won():
                if time.monotonic() >= next_look:
                    self._watch.see_running()
                    next_look = time.monotonic() + min(_LOOK_EVERY_S, self._settings.lease_s / 5)

    def _lead(self, session: Leadership) -> None:
        if self._stop.requested:
            return
        log.info("leading")
        next_round = 0.0
        busy = True
        news = frozenset({""})
        while not self._stop.requested:
            session.renew()
            if time.monotonic() >= next_round:
                self.look_around()
                busy = self._database.step(queue.anything)
                next_round = time.monotonic() + self._settings.dispatch_interval_s * (1 if busy else _IDLE)
                session.renew()
            if busy or news:
                if news != _JUST_FREED:
                    self.deliver()
                    session.renew()
                self.settle()
                self._news()
            news = session.wait(next_round - time.monotonic(), self._stop)
            if news == _JUST_FREED:
                news |= session.wait(_LEISURE_S, self._stop)
            if news:
                next_round = min(next_round, time.monotonic() + self._settings.dispatch_interval_s)

    def look_around(self) -> None:
        """Check the conditions that change with time and that matter to hand-overs: spent quotas, lost workers and
        messages, and jobs that no slot can run. `worker.housekeeping` does all other work that is due from time to
        time."""
        now = time.monotonic()
        if now >= self._next_holds:
            self._next_holds = now + _HOLDS_EVERY_S
            for held in self._database.run(holds.refresh, self._limits):
                if held.until is not None:  # waits for another job to end come and go with every job
                    log.info("held by a quota", user=held.user_id, quota=held.quota, until=held.until.isoformat())
            if lines := self._dropped.uncounted():
                self._database.run(self._dropped.count, lines)
                self._dropped.counted(lines)
        self._watch.take_back_lost()
        self._watch.fail_unservable()
        self._reconcile()

    def deliver(self) -> None:
        """Hand queued jobs to slots with room, and send them there once that is committed."""
        if time.monotonic() < self._redis_again:
            return
        handed = self._database.quickly(choose, self._depth, self._max_running)
        if not handed:
            return
        try:
            self._queues.send(handed)
        except RedisError as error:
            self._database.run(queue.withdraw, handed)
            self._redis_failed(error)
        else:
            self._redis_answered()
            for message in handed:
                log.info("handed over", **_fields(message))
                if message.waited is not None:
                    accepted, handed_over = message.waited
                    self._tracing.past(
                        "queue wait", accepted, handed_over, parent=message.traceparent, **_fields(message)
                    )

    def settle(self) -> None:
        """Bring presets up to date with their children."""
        behind = self._database.quickly(presets.unsettled)
        if behind:
            self._database.run(presets.settle, behind)

    def _reconcile(self) -> None:
        """Make jobs available again that were handed over a while ago and did not arrive."""
        handed = self._watch.overdue(self._grace_s)
        if not handed:
            return
        slots = self._database.step(turns.live_slots)
        live = {slot.worker for slot in slots}
        by_worker: defaultdict[str, list[HandOver]] = defaultdict(list)
        for message in handed:
            by_worker[message.worker].append(message)
        for worker, theirs in by_worker.items():
            try:
                if worker in live:
                    waiting = self._queues.waiting(worker)
                    lost = [message for message in theirs if rq_id(message.job_id, message.attempt) not in waiting]
                    why = "not in its queue"
                else:
                    self._queues.discard(theirs)
                    lost, why = theirs, "its worker is gone"
            except RedisError as error:
                self._redis_failed(error)
                return
            self._withdraw(lost, why)
        self._relieve(slots)

    def _relieve(self, slots: Sequence[OpenSlot]) -> None:
        """Give slots with room the jobs that wait behind a long job elsewhere."""
        idle = sum(slot.idle for slot in slots)
        small = sum(self._depth.small - slot.small for slot in slots if slot.long == 0)
        if idle == 0 and small <= 0:
            return
        stuck = self._watch.stuck(self._grace_s, idle, small)
        if not stuck:
            return
        try:
            self._queues.discard(stuck)
        except RedisError as error:
            self._redis_failed(error)
            return
        self._withdraw(stuck, "another slot is idle")

    def _withdraw(self, lost: list[HandOver], why: str) -> None:
        if self._database.run(queue.withdraw, lost):
            for message in lost:
                log.warning("withdrawn", why=why, **_fields(message))

    def _redis_failed(self, error: RedisError) -> None:
        if not self._redis.failing:
            log.warning("Redis is lost", error=str(error))
        self._redis_again = time.monotonic() + self._redis.next()

    def _redis_answered(self) -> None:
        if self._redis.failing:
            log.info("Redis is back")
        self._redis.reset()


def choose(connection: Connection, depth: Depth, max_running: int = ANY_NUMBER) -> list[HandOver]:
    """Mark queued jobs as handed over, as many as the live slots have room for. A statement marks several jobs, and
    each statement is a step of its own."""
    messages: list[HandOver] = []
    locked: set[UUID] = set()
    while True:
        handed = turns.hand_over_some(connection, depth, max_running, locked)
        messages.extend(handed.messages)
        locked.update(handed.missed)
        if not handed.more or not (handed.messages or handed.missed):
            return messages


def _fields(message: HandOver) -> dict[str, str | int]:
    """The fields of a hand-over in the log and in the traces."""
    fields: dict[str, str | int] = {"job": str(message.job_id), "attempt": message.attempt, "worker": message.worker}
    return fields if message.request_id is None else {**fields, "request_id": message.request_id}


def main() -> int:
    """`warpfold dispatcher`"""
    argparse.ArgumentParser(
        prog="warpfold dispatcher",
        description="Run the dispatcher until SIGTERM: it hands jobs to slots, takes back lost ones, removes old ones "
        "and sends webhooks. Of several one leads; the others stand by.",
    ).parse_args()
    logs.configure(role="dispatcher")
    settings = load_settings()
    if not settings.database_url or not settings.redis_url:
        log.error("set WARPFOLD_DATABASE_URL and WARPFOLD_REDIS_URL")
        return 2
    stop = Stop()
    stop.listen()
    # If Postgres crashes, a forgotten hand-over or recovery is simply due again: the message in Redis stays valid.
    # The name is this process's alone. If it hangs, the next leader ends its sessions by that name.
    name = f"warpfold-dispatcher {secrets.token_hex(4)}"
    database = BlockingDatabase(settings.database_url, application=name, durable=False)
    queues = AttemptQueues(connect(settings.redis_url, answer_within_s=5.0))
    sender = Sender(settings)
    sender.start()
    kept = BlockingDatabase(settings.database_url, application="warpfold-housekeeping", pool_size=1, durable=False)
    housekeeping = Housekeeping(settings, kept)
    housekeeping.start()
    tracing = start_tracing(settings, "dispatcher")
    Dispatcher(settings, database, queues, stop, tracing, news=sender.wake).run()
    sender.stop()
    housekeeping.stop()
    kept.close()
    tracing.close()
    database.close()
    log.info("stopped")
    return 0


if __name__ == "__main__":
    sys.exit(main())
