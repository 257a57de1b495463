"""Access tokens, or keys: made here, shown once, kept only as hashes; and the user whom each belongs to."""

import hashlib
import secrets
from collections.abc import Collection, Mapping, Sequence, Set
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from types import MappingProxyType
from typing import Any

from sqlalchemy import Connection, LargeBinary, Row, and_, bindparam, func, insert, or_, select, update
from sqlalchemy.dialects.postgresql import insert as upsert

from warpfold.app.auth.scopes import Need, Scope, scopes_in, text_of
from warpfold.app.db import ACCESS
from warpfold.app.tables.users import IN_FORCE, sessions, tokens, users

PREFIX = "wf_"
MOST_DAYS = 36500.0
"""The longest lifetime of a token that expires."""

_RANDOM_BYTES = 32
_HINT_LENGTH = len(PREFIX) + 6


class Role(StrEnum):
    """What a user may do: a viewer reads, a user submits and cancels own jobs, an admin does everything."""

    ADMIN = "admin"
    USER = "user"
    VIEWER = "viewer"


SCOPES: Mapping[Role, Set[Scope]] = MappingProxyType(
    {
        Role.VIEWER: frozenset({Scope.READ}),
        Role.USER: frozenset({Scope.READ, Scope.SUBMIT, Scope.MANAGE}),
        Role.ADMIN: frozenset(Scope),
    }
)
"""What each role may do at most; a key may do less."""


class RoleMismatch(ValueError):
    """The user exists with another role, or the role does not have a scope that a key is to have."""


class UserRemoved(ValueError):
    """The user was removed, and jobs of the user are still there under the name."""


class OutlivesMaker(ValueError):
    """A key would last longer than the key that makes it."""


@dataclass(frozen=True, slots=True)
class Principal:
    """The user whom a request comes from. `key_id` names the key that came with it, or by which its session was opened;
    `restricted` are the scopes of a key that may do less than the role allows."""

    id: int
    name: str
    role: Role
    key_id: int | None = None
    restricted: Set[Scope] | None = None

    @property
    def scopes(self) -> Set[Scope]:
        return SCOPES[self.role] if self.restricted is None else SCOPES[self.role] & self.restricted

    def may(self, need: Need) -> bool:
        """Whether the role of the user and the scopes of the key allow what a route needs (`app.auth.scopes`)."""
        if need == "any":
            return True
        return self.scopes == SCOPES[self.role] if need == "whole" else need in self.scopes

    @property
    def is_admin(self) -> bool:
        """Whether the request may do what admins do to the things of others."""
        return self.may(Scope.ADMIN)


@dataclass(frozen=True, slots=True)
class Minted:
    """A new token. `token` is the secret itself; only `hash` and `hint` may be stored."""

    token: str
    hash: bytes
    hint: str


def mint() -> Minted:
    """A token of 256 random bits."""
    token = PREFIX + secrets.token_urlsafe(_RANDOM_BYTES)
    return Minted(token, hash_of(token), token[:_HINT_LENGTH])


def hash_of(token: str) -> bytes:
    """SHA-256, shape (32,) bytes. A token is random, not a password: no salt or slow hash is needed."""
    return hashlib.sha256(token.encode()).digest()


@dataclass(frozen=True, slots=True)
class Issued:
    """A new token: what lists will show of it, and the secret itself, which is nowhere else."""

    info: "TokenInfo"
    token: str


@dataclass(frozen=True, slots=True)
class TokenInfo:
    """A token as lists show it; `hint` are its first characters, and `scopes` what it may do. The secret before the
    latest rotation holds until `old_until`."""

    id: int
    user: str
    role: Role
    label: str
    hint: str
    created_at: datetime
    revoked_at: datetime | None
    expires_at: datetime | None
    scopes: Set[Scope]
    made_by: str | None
    last_used_at: datetime | None
    rotated_at: datetime | None
    old_until: datetime | None


_SHOWN = bindparam("hash", type_=LargeBinary)
IS_SHOWN = or_(tokens.c.hash == _SHOWN, and_(tokens.c.old_hash == _SHOWN, tokens.c.old_until > func.now()))
"""Whether a token has the secret whose hash is bound as `hash`: its own, or the one before while both hold."""

_IS_DUE = or_(tokens.c.last_used_at.is_(None), tokens.c.last_used_at < func.now() - timedelta(minutes=1))
PRINCIPAL = (users.c.id, users.c.name, users.c.role, tokens.c.id.label("key_id"), tokens.c.scopes, _IS_DUE.label("due"))
"""The columns that a `Seen` is made of."""
_OF_TOKEN = select(*PRINCIPAL).join(tokens, tokens.c.user_id == users.c.id).where(IS_SHOWN, IN_FORCE)


@dataclass(frozen=True, slots=True)
class Seen:
    """The user whom a secret belongs to. `due` says that the use of the key was not noted for a minute."""

    principal: Principal
    due: bool

    @classmethod
    def of(cls, row: Row[tuple[int, str, str, int | None, str | None, bool]]) -> "Seen":
        return cls(Principal(row.id, row.name, Role(row.role), row.key_id, scopes_in(row.scopes)), bool(row.due))


def principal_of(connection: Connection, token_hash: bytes) -> Seen | None:
    """The user of a token that is neither revoked nor expired."""
    row = connection.execute(_OF_TOKEN, {"hash": token_hash}).one_or_none()
    return None if row is None else Seen.of(row)


def note_use(connection: Connection, token_id: int) -> None:
    """Note that a token is used, unless that was noted within the last minute."""
    connection.execute(update(tokens).where(tokens.c.id == token_id, _IS_DUE).values(last_used_at=func.now()))


def create_token(
    connection: Connection, user: str, role: Role | None = None, label: str = "", days: float | None = None
) -> str:
    """Make a token for `user`, who is created with `role` ("user" by default) if new; it expires after `days`, None:
    never. Returns the token: keep it.

    Raises RoleMismatch if the user exists with another role than the one given.
    """
    return issue_token(connection, user, role, label, days).token


def issue_token(
    connection: Connection,
    user: str,
    role: Role | None = None,
    label: str = "",
    days: float | None = None,
    *,
    scopes: Collection[Scope] | None = None,
    made_by: str | None = None,
) -> Issued:
    """Make a token like `create_token`, with these scopes, None: those of the user's role. Returns what lists will show
    of it, too. Raises RoleMismatch and UserRemoved."""
    connection.execute(
        upsert(users).values(name=user, role=role or Role.USER).on_conflict_do_nothing(index_elements=["name"])
    )
    row = connection.execute(select(users.c.id, users.c.role, users.c.removed_at).where(users.c.name == user)).one()
    if row.removed_at is not None:
        raise UserRemoved(f"{user!r} was removed; the name is free again once the last of the user's jobs is gone")
    if role is not None and row.role != role:
        raise RoleMismatch(f"{user!r} exists and has the role {row.role}, not {role}")
    beyond = set(scopes or ()) - SCOPES[Role(row.role)]
    if beyond:
        raise RoleMismatch(f"{user!r} has the role {row.role}, which does not allow {text_of(beyond)}")
    made = mint()
    values = {
        "user_id": row.id,
        "label": label,
        "hint": made.hint,
        "hash": made.hash,
        "expires_at": None if days is None else func.now() + timedelta(days=days),
        "scopes": text_of(scopes),
        "made_by": made_by,
    }
    token_id = connection.execute(insert(tokens).values(values).returning(tokens.c.id)).scalar_one()
    [info] = list_tokens(connection, token_id)
    return Issued(info, made.token)


def issue_own_token(
    connection: Connection,
    user: Principal,
    label: str,
    days: float | None,
    scopes: Collection[Scope] | None,
) -> Issued:
    """Make a token of the user's own, which lasts no longer than the one that makes it. Raises RoleMismatch, and
    OutlivesMaker if it was to."""
    ends = connection.execute(select(tokens.c.expires_at).where(tokens.c.id == user.key_id)).scalar_one_or_none()
    if ends is not None:
        left = (ends - datetime.now(UTC)) / timedelta(days=1)
        if days is not None and days > left:
            raise OutlivesMaker(
                f"the key that you use ends {ends:%Y-%m-%d %H:%M} UTC, and makes none that lasts longer"
            )
        days = left if days is None else days
    return issue_token(connection, user.name, None, label, days, scopes=scopes, made_by=user.name)


def rotate_token(
    connection: Connection,
    token_hash: bytes | None = None,
    *,
    token_id: int | None = None,
    of_user: int | None = None,
    both_hold: timedelta = timedelta(0),
) -> Issued | None:
    """Give a token, which is named by the hash of its secret or by its id, a new secret; its lifetime begins anew. The
    old secret, and the sessions that were opened with the token, hold for `both_hold` longer; a secret before the old
    one is useless at once. None if no such token is in force, or it is not the user's."""
    made = mint()
    until = func.now() + both_hold
    ours = tokens.c.hash == token_hash if token_id is None else tokens.c.id == token_id
    if of_user is not None:
        ours = and_(ours, tokens.c.user_id == of_user)
    begun = func.coalesce(tokens.c.rotated_at, tokens.c.created_at)
    changed = {
        "hash": made.hash,
        "hint": made.hint,
        "rotated_at": func.now(),
        "expires_at": func.now() + (tokens.c.expires_at - begun),
        "old_hash": tokens.c.hash,
        "old_until": func.least(until, tokens.c.expires_at),
    }
    rotated = connection.execute(
        update(tokens).where(ours, IN_FORCE).values(**changed).returning(tokens.c.id)
    ).scalar_one_or_none()
    if rotated is None:
        return None
    connection.execute(
        update(sessions)
        .where(sessions.c.token_id == rotated)
        .values(expires_at=func.least(sessions.c.expires_at, until))
    )
    connection.execute(select(func.pg_notify(ACCESS, "")))
    [info] = list_tokens(connection, rotated)
    return Issued(info, made.token)


_LISTED = (
    *(tokens.c.id, users.c.name, users.c.role, tokens.c.label, tokens.c.hint, tokens.c.created_at),
    *(tokens.c.revoked_at, tokens.c.expires_at, tokens.c.scopes, tokens.c.made_by, tokens.c.last_used_at),
    *(tokens.c.rotated_at, tokens.c.old_until),
)


def list_tokens(connection: Connection, only: int | None = None, *, of_user: int | None = None) -> Sequence[TokenInfo]:
    """All tokens, oldest first, the revoked among them; with `only` the token of that id, with `of_user` those of
    one user."""
    statement = select(*_LISTED).join(users, users.c.id == tokens.c.user_id).order_by(tokens.c.id)
    if only is not None:
        statement = statement.where(tokens.c.id == only)
    if of_user is not None:
        statement = statement.where(tokens.c.user_id == of_user)
    return [_info(row) for row in connection.execute(statement)]


def _info(row: Row[*tuple[Any, ...]]) -> TokenInfo:
    restricted = scopes_in(row.scopes)
    role = Role(row.role)
    scopes = SCOPES[role] if restricted is None else SCOPES[role] & restricted
    return TokenInfo(
        row.id,
        row.name,
        role,
        row.label,
        row.hint,
        row.created_at,
        row.revoked_at,
        row.expires_at,
        scopes,
        row.made_by,
        row.last_used_at,
        row.rotated_at,
        row.old_until,
    )


def revoke_token(connection: Connection, token_id: int, *, of_user: int | None = None) -> bool:
    """Make a token useless, within milliseconds of the commit. False if no such token is in force, or it is not the
    user's."""
    ours = tokens.c.id == token_id if of_user is None else (tokens.c.id == token_id) & (tokens.c.user_id == of_user)
    revoked = connection.execute(update(tokens).where(ours, IN_FORCE).values(revoked_at=func.now())).rowcount
    connection.execute(select(func.pg_notify(ACCESS, "")))
    return bool(revoked)


def any_admin(connection: Connection) -> bool:
    """Whether an admin's token is in force."""
    of_admin = (
        select(tokens.c.id).join(users, users.c.id == tokens.c.user_id).where(users.c.role == Role.ADMIN, IN_FORCE)
    )
    return connection.execute(select(of_admin.exists())).scalar_one()
