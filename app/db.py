"""Connections to Postgres: one asynchronous `Database` for the api, one blocking for dispatcher and workers.

A unit of work is a plain function whose first argument is a connection. Both classes run it in one transaction,
so that repositories are written once and never commit by themselves.
"""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from types import MappingProxyType
from typing import Any, Concatenate, ParamSpec, TypeVar

from psycopg.conninfo import make_conninfo
from sqlalchemy import Connection, create_engine
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import DBAPIError, InterfaceError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine

from warpfold.app.driver import AsyncDriver, BlockingDriver
from warpfold.contract.backoff import Backoff

P = ParamSpec("P")
T = TypeVar("T")

DATABASE_LOST = (OperationalError, InterfaceError, PoolTimeout)
"""The error of `run` and `read` while Postgres cannot be reached or does not answer in time."""

# Channels of notifications. A payload is only a hint to look; nothing depends on its arrival.
QUEUE = "warpfold_queue"  # something to dispatch, or room in a slot; no payload, or FREED
FREED = "freed"  # there is room in a slot, and nothing waits for it
JOB = "warpfold_job"  # payload: ids of jobs whose rows changed, or of their batches, with commas between
ENDED = "warpfold_ended"  # payload: ids of jobs that ended, with commas between; of them there is no other news
OUTCOME = "warpfold_told"  # payload: the id of a job that ended, its secret, and its outcome (`app.jobs.outcome`)
ACCESS = "warpfold_access"  # a token was revoked, or a role changed; no payload

NOTICES_LOSS: Mapping[str, Any] = MappingProxyType(
    {"keepalives_idle": 5, "keepalives_interval": 2, "keepalives_count": 3, "tcp_user_timeout": 8_000}
)
"""Options of libpq: a connection that the network cut off is an error after eight seconds in which nothing that was
sent was received, and after eleven in which nothing was sent. A worker whose machine was cut off for a moment thus
renews its lease by a new connection before the lease is over; TCP itself would wait ever longer."""

LETS_GO = "-c tcp_keepalives_idle=5 -c tcp_keepalives_interval=2 -c tcp_keepalives_count=3 -c tcp_user_timeout=8s"
"""Options of a session: Postgres notices within this time that its client was cut off, and lets go of the rows that it
locked. The process that takes back its jobs needs these rows, and so does the client itself when it returns."""

# Every statement of ours is short; the time-outs bound what a lost network or a forgotten lock can cost.
KEPT_PLANS = " ".join(
    f"-c {setting}"
    for setting in (
        "statement_timeout=30s",
        "lock_timeout=10s",
        "idle_in_transaction_session_timeout=60s",
        "timezone=UTC",
        # Statements are few, often run and written for one plan each (`app.tables.jobs.is_`): planning them anew would
        # cost more than running.
        "plan_cache_mode=force_generic_plan",
        # A plan is kept as long as its connection, also one that was made while a table was empty or had no
        # statistics: then reading all of it looks cheap. Our statements are answered by indexes, each of them.
        "enable_seqscan=off",
        "jit=off",  # compiling after a wrong estimate would cost more than the statement
    )
)
"""Options of a session whose statements are planned once a connection."""

# Filters are planned each time: no plan suits all values, and of a million jobs a page of a rare value took half a
# second.
PLAN_EACH = "-c plan_cache_mode=force_custom_plan -c enable_seqscan=on"


def database_url(url: str) -> URL:
    """`url` for SQLAlchemy with psycopg; any scheme of Postgres will do."""
    return make_url(url).set(drivername="postgresql+psycopg")


def first_line(error: OperationalError) -> str:
    """The message of Postgres or of the network, for a person who has given a wrong address."""
    return str(error.orig).strip().splitlines()[0]


def conninfo(url: str) -> str:
    """`url` for psycopg itself, in libpq's words: SQLAlchemy writes a url's spaces as +, libpq takes them for +."""
    parts = database_url(url)
    several = {name: value if isinstance(value, str) else ",".join(value) for name, value in parts.query.items()}
    server = {"user": parts.username, "password": parts.password, "host": parts.host, "port": parts.port}
    return make_conninfo("", **{**server, "dbname": parts.database, **several})


def _connect_args(application: str, more_options: str = "") -> dict[str, object]:
    options = f"{KEPT_PLANS} {LETS_GO} {more_options}"
    return {"application_name": application, "options": options, "connect_timeout": 5, **NOTICES_LOSS}


class Database:
    """Pools of asynchronous connections, opened as needed: for units of work, for reads, for searches."""

    def __init__(self, url: str, *, application: str, pool_size: int = 8) -> None:
        def pool(purpose: str, more_options: str = "", **options: Any) -> AsyncEngine:
            return create_async_engine(
                database_url(url),
                pool_size=pool_size,
                max_overflow=0,
                pool_timeout=10,
                connect_args=_connect_args(f"{application} {purpose}", more_options),
                **options,
            )

        self._working = pool("work")
        # The same connections: a statement that waits for a lock keeps nobody who only reads from a connection.
        self._stepping = self._working.execution_options(isolation_level="AUTOCOMMIT")
        # Without BEGIN, COMMIT and the ROLLBACK of a returned connection, a read is one round trip.
        at_once: dict[str, Any] = {"isolation_level": "AUTOCOMMIT", "pool_reset_on_return": None}
        self._reading = pool("reads", **at_once)
        self._searching = pool("searches", PLAN_EACH, **at_once)
        self._driver = AsyncDriver(conninfo(url), _connect_args(f"{application} driver"), pool_size)

    async def run(self, work: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run `work` in one transaction and commit it.

        A connection that turns out to be dead (Postgres was restarted) is replaced and `work` run again, once;
        a failure of the commit itself is never retried, because it may have happened.
        """
        try:
            return await self._transact(work, *args, **kwargs)
        except _DeadConnection:
            return await self._transact(work, *args, **kwargs)

    async def read(self, work: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run `work`, which only reads, without a transaction: each of its statements sees the latest commits."""
        return await self._look(self._reading, work, *args, **kwargs)

    async def step(self, work: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run `work` with each of its statements a transaction of its own: one round trip each, not three. If the
        connection turns out to be dead, `work` is run again, though its first statements may have happened: they must
        change nothing the second time."""
        return await self._look(self._stepping, work, *args, **kwargs)

    async def quickly(self, work: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Like `step`, on the driver alone: for the few statements that a lone job waits for (`app.driver`)."""
        return await self._driver.run(work, *args, **kwargs)

    async def search(self, work: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Like `read`, for statements whose best plan depends on the values they look for."""
        return await self._look(self._searching, work, *args, **kwargs)

    async def _transact(self, work: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        async with self._working.connect() as connection:
            with _noticing_death():
                result = await connection.run_sync(work, *args, **kwargs)
            await connection.commit()
            return result

    async def _look(
        self,
        engine: AsyncEngine,
        work: Callable[Concatenate[Connection, P], T],
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> T:
        async def attempt() -> T:
            async with engine.connect() as connection:
                with _noticing_death():
                    return await connection.run_sync(work, *args, **kwargs)

        try:
            return await attempt()
        except _DeadConnection:
            return await attempt()

    async def close(self) -> None:
        for engine in (self._working, self._reading, self._searching):
            await engine.dispose()
        await self._driver.close()


@contextmanager
def _noticing_death() -> Iterator[None]:
    try:
        yield
    except DBAPIError as error:
        if error.connection_invalidated:
            raise _DeadConnection from error
        raise


class _DeadConnection(OperationalError):
    """The server closed the connection before the commit."""

    def __init__(self) -> None:
        super().__init__("the connection to Postgres was lost", None, Exception("connection lost"))


class BlockingDatabase:
    """The database for a process without an event loop.

    A process whose every write can be lost with the machine and made again need not wait for the disk: `durable=False`.
    """

    def __init__(self, url: str, *, application: str, pool_size: int = 2, durable: bool = True) -> None:
        self.application = application
        """The name of its sessions in Postgres."""
        options = "" if durable else "-c synchronous_commit=off"
        self._engine = create_engine(
            database_url(url), pool_size=pool_size, max_overflow=2, connect_args=_connect_args(application, options)
        )
        self._statements = self._engine.execution_options(isolation_level="AUTOCOMMIT")
        self._driver = BlockingDriver(conninfo(url), _connect_args(application, options))

    def quickly(self, work: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Like `step`, on the driver alone: for the few statements that a lone job waits for (`app.driver`)."""
        return self._driver.run(work, *args, **kwargs)

    def step(self, work: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run `work` with each of its statements a transaction of its own: one round trip each, not three.

        Raises one of DATABASE_LOST like `run`.
        """
        with self._statements.connect() as connection:
            return work(connection, *args, **kwargs)

    def run(self, work: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run `work` in one transaction and commit it. Raises one of DATABASE_LOST while Postgres cannot be reached."""
        with self._engine.begin() as connection:
            return work(connection, *args, **kwargs)

    def run_patiently(
        self, patience_s: float, work: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Like `run`, but keeps trying for `patience_s` seconds while Postgres cannot be reached.

        `work` may therefore be committed and run again: it must be guarded (by a lease token, say) so that the
        second time changes nothing.
        """
        return _patiently(patience_s, partial(self.run, work, *args, **kwargs))

    def quickly_and_patiently(
        self, patience_s: float, work: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Like `run_patiently`, but as `quickly` does."""
        return _patiently(patience_s, partial(self.quickly, work, *args, **kwargs))

    def close(self) -> None:
        self._engine.dispose()
        self._driver.close()


def _patiently(patience_s: float, attempt: Callable[[], T]) -> T:
    give_up = time.monotonic() + patience_s
    backoff = Backoff()
    while True:
        try:
            return attempt()
        except DATABASE_LOST:
            pause = backoff.next()
            if time.monotonic() + pause > give_up:
                raise
        time.sleep(pause)
