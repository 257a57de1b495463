"""Units of work that a lone job waits for, on the driver of Postgres alone.

SQLAlchemy takes longer to run a small statement than Postgres does, most of all in a process that has just slept
(docs/decisions/0029-the-short-way-of-a-lone-job.md). Here each statement is compiled once, and its values go to the
driver by their places. Each statement is a transaction of its own.
"""

import asyncio
from collections import namedtuple
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Concatenate, ParamSpec, TypeVar, cast

import psycopg
from psycopg.pq import TransactionStatus
from sqlalchemy import ClauseElement, Connection
from sqlalchemy.dialects.postgresql.psycopg import PGDialect_psycopg
from sqlalchemy.exc import DBAPIError, OperationalError
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.util import await_only, greenlet_spawn

P = ParamSpec("P")
T = TypeVar("T")

Fetched = tuple[Sequence[tuple[Any, ...]], Callable[[], Sequence[psycopg.Column] | None]]
"""Rows, and what their columns are called for who asks."""


class Rows:
    """The rows of a statement, to be read as those of SQLAlchemy are."""

    def __init__(self, names: Sequence[str], make: Callable[..., Any], rows: Sequence[tuple[Any, ...]]) -> None:
        self._names = names
        self._make = make
        self._rows = rows

    def __iter__(self) -> Iterator[Any]:
        return (self._make(*row) for row in self._rows)

    def all(self) -> Sequence[Any]:
        return list(self)

    def one_or_none(self) -> Any:
        assert len(self._rows) <= 1, "the statement has one row at most"
        return next(iter(self), None)

    def scalars(self) -> Iterator[Any]:
        return (row[0] for row in self._rows)

    def mappings(self) -> "Rows":
        """The rows as mappings from names to values."""
        return Rows(self._names, lambda *row: dict(zip(self._names, row, strict=True)), self._rows)


@dataclass(slots=True)
class _Prepared:
    """A statement in the driver's syntax. The names of its columns are known once it has run."""

    text: str
    literals: Mapping[str, object]
    places: Sequence[str]
    writers: Mapping[str, Callable[[Any], Any]]
    names: Sequence[str] = ()
    make: Callable[..., Any] = tuple

    def values(self, parameters: Mapping[str, object]) -> Sequence[object]:
        bound = {**self.literals, **parameters}
        return [self.writers[name](bound[name]) if name in self.writers else bound[name] for name in self.places]


class Statements:
    """The compiled statements of a process. They are few, and live as long as the objects they were compiled from."""

    def __init__(self) -> None:
        self._dialect = PGDialect_psycopg(dbapi=psycopg, paramstyle="numeric_dollar")  # type: ignore[no-untyped-call]
        self._prepared: dict[ClauseElement, _Prepared] = {}

    def prepared(self, statement: ClauseElement) -> _Prepared:
        known = self._prepared.get(statement)
        return known if known is not None else self._prepared.setdefault(statement, self._compiled(statement))

    def _compiled(self, statement: ClauseElement) -> _Prepared:
        compiled = statement.compile(dialect=self._dialect)
        assert isinstance(compiled, SQLCompiler)
        assert not compiled.post_compile_params, "the text of the statement is the same for all values"
        writers = {
            name: writer
            for bind, name in compiled.bind_names.items()
            if (writer := bind.type.dialect_impl(self._dialect).bind_processor(self._dialect)) is not None
        }
        literals = {
            name: value
            for name, value in compiled.construct_params(_check=False).items()
            if not compiled.binds[name].required
        }
        return _Prepared(compiled.string, literals, compiled.positiontup or (), writers)


class DriverConnection:
    """The methods of a connection that such a unit of work needs."""

    def __init__(self, statements: Statements, fetch: Callable[[str, Sequence[object]], Fetched]) -> None:
        """`fetch` runs a text with the values of its places."""
        self.info: dict[str, object] = {}
        """What a unit of work notes about the connection for those that come after it."""
        self._statements = statements
        self._fetch = fetch

    def execute(self, statement: ClauseElement, parameters: Mapping[str, object] | None = None) -> Rows:
        prepared = self._statements.prepared(statement)
        try:
            rows, columns = self._fetch(prepared.text, prepared.values(parameters or {}))
        except psycopg.Error as error:
            raise _as_sqlalchemy_says(prepared.text, error) from error
        if not prepared.names:
            prepared.names = [each.name for each in columns() or ()]
            prepared.make = namedtuple("Row", prepared.names, rename=True)  # type: ignore[misc]
        return Rows(prepared.names, prepared.make, rows)


class BlockingDriver:
    """Connections for a process without an event loop. Its threads may share it."""

    def __init__(self, conninfo: str, options: Mapping[str, Any]) -> None:
        self._conninfo = conninfo
        self._options = options
        self._statements = Statements()
        self._closed = False
        self._idle: list[tuple[psycopg.Connection[tuple[Any, ...]], DriverConnection]] = []

    def run(self, work: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run `work`. Raises what SQLAlchemy would raise."""
        connection, driver = self._idle.pop() if self._idle else self._connected()
        try:
            return work(cast(Connection, driver), *args, **kwargs)
        finally:
            if connection.info.transaction_status is TransactionStatus.IDLE and not self._closed:
                self._idle.append((connection, driver))
            else:  # lost, in the middle of a statement, or the last to come back
                if connection.broken:
                    self._close_idle()  # Postgres was restarted, or the network cut off: the idle ones are dead as well
                connection.close()

    def close(self) -> None:
        """Close what is idle now, and what is in use as soon as its work ends."""
        self._closed = True
        self._close_idle()

    def _close_idle(self) -> None:
        while self._idle:
            self._idle.pop()[0].close()

    def _connected(self) -> tuple[psycopg.Connection[tuple[Any, ...]], DriverConnection]:
        try:
            connection = psycopg.connect(
                self._conninfo, autocommit=True, cursor_factory=psycopg.RawCursor, **self._options
            )
        except psycopg.Error as error:
            raise _as_sqlalchemy_says("", error) from error

        def fetch(text: str, values: Sequence[object]) -> Fetched:
            cursor = connection.execute(text, values, prepare=True)
            return cursor.fetchall() if cursor.description else (), lambda: cursor.description

        return connection, DriverConnection(self._statements, fetch)


class AsyncDriver:
    """Connections for an event loop, `at_most` so many."""

    def __init__(self, conninfo: str, options: Mapping[str, Any], at_most: int) -> None:
        self._conninfo = conninfo
        self._options = options
        self._statements = Statements()
        self._room = asyncio.Semaphore(at_most)
        self._closed = False
        self._idle: list[psycopg.AsyncConnection[tuple[Any, ...]]] = []

    async def run(self, work: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run `work`, and once more if the connection turns out to be dead: statements that were run before must change
        nothing the second time. Raises what SQLAlchemy would raise."""
        async with self._room:
            if self._idle:
                connection = self._idle.pop()
                try:
                    return await self._on(connection, work, *args, **kwargs)
                except OperationalError:
                    if not connection.closed:
                        raise
                await self._close_idle()  # Postgres was restarted: the others are dead as well
            return await self._on(await self._connected(), work, *args, **kwargs)

    async def _on(
        self,
        connection: psycopg.AsyncConnection[tuple[Any, ...]],
        work: Callable[Concatenate[Connection, P], T],
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> T:
        async def fetched(text: str, values: Sequence[object]) -> Fetched:
            cursor = await connection.execute(text, values, prepare=True)
            return await cursor.fetchall() if cursor.description else (), lambda: cursor.description

        def fetch(text: str, values: Sequence[object]) -> Fetched:
            return await_only(fetched(text, values))

        try:
            driver = cast(Connection, DriverConnection(self._statements, fetch))
            return await greenlet_spawn(partial(work, driver, *args, **kwargs))
        finally:
            if connection.info.transaction_status is TransactionStatus.IDLE and not self._closed:
                self._idle.append(connection)
            else:
                await connection.close()

    async def close(self) -> None:
        """Close what is idle now, and what is in use as soon as its work ends: a server that stops may end before the
        requests that it holds."""
        self._closed = True
        await self._close_idle()

    async def _close_idle(self) -> None:
        while self._idle:
            await self._idle.pop().close()

    async def _connected(self) -> psycopg.AsyncConnection[tuple[Any, ...]]:
        try:
            return await psycopg.AsyncConnection.connect(
                self._conninfo, autocommit=True, cursor_factory=psycopg.AsyncRawCursor, **self._options
            )
        except psycopg.Error as error:
            raise _as_sqlalchemy_says("", error) from error


def _as_sqlalchemy_says(text: str, error: psycopg.Error) -> Exception:
    wrapped = DBAPIError.instance(text, None, error, psycopg.Error)
    assert isinstance(wrapped, Exception), "psycopg's errors are no signals to exit"
    return wrapped
