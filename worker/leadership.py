"""Makes one dispatcher the leader: it holds a lease in Postgres, renews it, and receives notifications."""

import time
from contextlib import suppress
from select import select
from typing import Self

import psycopg
from psycopg import sql

from warpfold.app.db import LETS_GO, NOTICES_LOSS, QUEUE, conninfo
from warpfold.worker.silence import Clock, SilenceDetector
from warpfold.worker.stop import Stop

_LOOK = """
select epoch, renewals, holder, holder is not null and exists (
    select from pg_stat_activity as session
    where session.pid = lead.pid and session.datname = current_database()
    -- Who may not see the sessions of another role sees no start of them.
    and coalesce(session.backend_start = lead.session_started_at, true)
)
from lead where name = 'dispatcher'
"""
_END_SESSIONS = """
select pg_terminate_backend(pid) from pg_stat_activity
where datname = current_database() and application_name = %s and pid <> pg_backend_pid()
"""
_TAKE = """
insert into lead (name, epoch, holder, pid, session_started_at, renewals, renewed_at, lasts_s)
values (
    'dispatcher', 1, %(holder)s, pg_backend_pid(),
    (select backend_start from pg_stat_activity where pid = pg_backend_pid()), 0, clock_timestamp(), %(lasts_s)s
)
on conflict (name) do update set
    epoch = lead.epoch + 1, holder = excluded.holder, pid = excluded.pid,
    session_started_at = excluded.session_started_at, renewals = 0, renewed_at = excluded.renewed_at,
    lasts_s = excluded.lasts_s
where lead.epoch = %(epoch)s and lead.renewals = %(renewals)s
returning epoch
"""
_RENEW = """
update lead set renewals = renewals + 1, renewed_at = clock_timestamp()
where name = 'dispatcher' and epoch = %s returning epoch
"""
_GIVE_BACK = "update lead set holder = null where name = 'dispatcher' and epoch = %s"


class LeadLost(Exception):
    """Another dispatcher has taken the lead."""


class Leadership:
    """A session of its own, in which a dispatcher holds the lead, or watches the dispatcher that holds it.

    The lead goes to another dispatcher at once when it is given back or its session ends, and after `lasts_s` seconds
    in which its holder did not renew it, by the watcher's own clock. Then all sessions of the silent holder are ended:
    its open transaction lets go of its rows, and its next statement fails, so that it hears of its loss.

    Leading saves work. The promise that no job runs twice does not depend on it. Each statement of a dispatcher is
    harmless in the hands of one that no longer leads (docs/decisions/0014-the-lead-is-a-lease.md). Every method raises
    psycopg.OperationalError once the session is lost.
    """

    def __init__(self, url: str, holder: str, lasts_s: float, clock: Clock = time.monotonic) -> None:
        """`holder` is the application name of all sessions of this dispatcher, and of no other session."""
        self._holder = holder
        self._lasts_s = lasts_s
        self._clock = clock
        self._epoch: int | None = None
        self._renew_at = 0.0
        self._silence = SilenceDetector[int](lasts_s / 5, clock)
        self._connection = psycopg.connect(
            conninfo(url),
            autocommit=True,
            application_name=holder,
            connect_timeout=5,
            # A session cut off by the network must end on both sides, or nobody leads.
            **NOTICES_LOSS,
            options=f"-c lock_timeout=5s {LETS_GO}",
        )

    def won(self) -> bool:
        """Try to become the leader, and return whether this dispatcher leads now. It is to be called often."""
        row = self._connection.execute(_LOOK).fetchone()
        epoch, renewals, holder, taken = row or (0, 0, None, False)
        if taken:
            self._silence.look({epoch: renewals})
            if epoch not in self._silence.lasting(self._lasts_s):
                return False
            self._connection.execute(_END_SESSIONS, (holder,))
        # Of several dispatchers that try at the same time one succeeds; the others meet another epoch.
        mine = {"holder": self._holder, "lasts_s": self._lasts_s, "epoch": epoch, "renewals": renewals}
        won = self._connection.execute(_TAKE, mine).fetchone()
        if won is None:
            return False
        (self._epoch,) = won
        self._renew_at = self._clock() + self._lasts_s / 5
        self._connection.execute(sql.SQL("listen {}").format(sql.Identifier(QUEUE)))
        return True

    def renew(self) -> None:
        """Renew the lead when it is time. It is to be called before every piece of work. Raises LeadLost."""
        if self._clock() < self._renew_at:
            return
        renewed_from = self._clock()
        if self._connection.execute(_RENEW, (self._epoch,)).fetchone() is None:
            self._epoch = None
            raise LeadLost
        self._renew_at = renewed_from + self._lasts_s / 5

    def wait(self, seconds: float, stop: Stop) -> frozenset[str]:
        """Sleep until a notification comes, the time is over, the lead must be renewed, or a stop is requested. Returns
        the payloads of the notifications."""
        if heard := self._heard():
            return heard
        seconds = min(seconds, self._renew_at - self._clock())
        readable, _, _ = select([self._connection.fileno(), stop.fileno()], [], [], max(0.0, seconds))
        return self._heard() if self._connection.fileno() in readable else frozenset()

    def _heard(self) -> frozenset[str]:
        return frozenset(news.payload for news in self._connection.notifies(timeout=0))

    def close(self) -> None:
        """Give the lead back, if this dispatcher holds it."""
        if self._epoch is not None:
            with suppress(psycopg.Error):
                self._connection.execute(_GIVE_BACK, (self._epoch,))
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()
