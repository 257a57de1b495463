"""The audit log: what administrators and keys did that changes something. An entry is written in the transaction of the
change, so that there is neither a change without its entry nor an entry without its change.

Submissions are not in it: each job names its owner, its time and its request.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, Concatenate, ParamSpec, TypeVar

from sqlalchemy import Connection, delete, func, insert, select

from warpfold.app.auth.access_tokens import Principal, TokenInfo
from warpfold.app.tables.users import audit_log

P = ParamSpec("P")
T = TypeVar("T")


class Action(StrEnum):
    """What was done."""

    SIGN_IN = "sign_in"
    SIGN_OUT = "sign_out"
    MAKE_KEY = "make_key"
    ROTATE_KEY = "rotate_key"
    REMOVE_KEY = "remove_key"
    SET_ROLE = "set_role"
    SET_QUOTA = "set_quota"
    REMOVE_USER = "remove_user"
    CANCEL_JOB = "cancel_job"
    CANCEL_BATCH = "cancel_batch"
    RENAME_ARRAY = "rename_array"
    EDIT_JOB = "edit_job"
    DELETE_JOB = "delete_job"
    DELETE_ARRAY = "delete_array"
    DELETE_RESULT = "delete_result"
    SHARE = "share"
    MAKE_LINK = "make_link"
    REMOVE_LINK = "remove_link"
    DRAIN = "drain"
    RESUME = "resume"
    MAKE_SECRET = "make_secret"  # noqa: S105 - of webhooks, and not the secret itself


@dataclass(frozen=True, slots=True)
class Caller:
    """Where a request comes from."""

    address: str
    request_id: str | None


_NOBODY = Caller("", None)
_calling: ContextVar[Caller] = ContextVar("calling", default=_NOBODY)


@contextmanager
def calling(caller: Caller) -> Iterator[None]:
    """The block answers a request of this caller."""
    token = _calling.set(caller)
    try:
        yield
    finally:
        _calling.reset(token)


@dataclass(frozen=True, slots=True)
class Deed:
    """What somebody does to a thing of an owner; `by` is None for a command on the machine of the service."""

    by: Principal | None
    action: Action
    thing: str = ""
    owner: str | None = None
    details: Mapping[str, object] = field(default_factory=dict)

    def done(
        self, connection: Connection, work: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Do `work`, and record the deed if that changed something, which its answer says by being true."""
        result = work(connection, *args, **kwargs)
        if result:
            record(connection, self)
        return result


def of_key(by: Principal | None, action: Action, key: TokenInfo) -> Deed:
    """What somebody does to a key."""
    details = {"name": key.label, "hint": key.hint, "scopes": sorted(key.scopes)}
    return Deed(by, action, str(key.id), key.user, details)


def record(connection: Connection, deed: Deed) -> None:
    """Add an entry, which is there if the transaction commits."""
    caller = _calling.get()
    connection.execute(
        insert(audit_log).values(
            actor=None if deed.by is None else deed.by.name,
            key_id=None if deed.by is None else deed.by.key_id,
            address=caller.address,
            request_id=caller.request_id,
            action=deed.action.value,
            thing=deed.thing,
            owner=deed.owner,
            details=dict(deed.details),
        )
    )


@dataclass(frozen=True, slots=True)
class Entry:
    """An entry of the log."""

    id: int
    at: datetime
    actor: str | None
    key_id: int | None
    address: str
    request_id: str | None
    action: str
    thing: str
    owner: str | None
    details: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Chosen:
    """Which entries are wanted; None restricts nothing."""

    actor: str | None = None
    action: Action | None = None
    thing: str | None = None
    since: datetime | None = None
    until: datetime | None = None


def page(connection: Connection, chosen: Chosen, limit: int, before: int | None) -> Sequence[Entry]:
    """Up to `limit` entries with smaller ids than `before`, the newest first."""
    table = audit_log.c
    statement = select(audit_log).order_by(table.id.desc()).limit(limit)
    for column, value in ((table.actor, chosen.actor), (table.action, chosen.action), (table.thing, chosen.thing)):
        if value is not None:
            statement = statement.where(column == value)
    if chosen.since is not None:
        statement = statement.where(table.at >= chosen.since)
    if chosen.until is not None:
        statement = statement.where(table.at < chosen.until)
    if before is not None:
        statement = statement.where(table.id < before)
    rows = connection.execute(statement)
    return [
        Entry(
            row.id,
            row.at,
            row.actor,
            row.key_id,
            row.address,
            row.request_id,
            row.action,
            row.thing,
            row.owner,
            row.details,
        )
        for row in rows
    ]


def remove_old(connection: Connection, older_than: timedelta, at_most: int) -> int:
    """Remove up to `at_most` entries past their time, the oldest first; returns how many."""
    old = select(audit_log.c.id).where(audit_log.c.at < func.now() - older_than).order_by(audit_log.c.at).limit(at_most)
    return connection.execute(delete(audit_log).where(audit_log.c.id.in_(old))).rowcount
