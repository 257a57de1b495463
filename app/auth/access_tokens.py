"""Access tokens: made here, shown once, kept only as hashes; and the user whom each belongs to."""

import hashlib
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from sqlalchemy import Connection, bindparam, func, insert, select, update
from sqlalchemy.dialects.postgresql import insert as upsert

from warpfold.app.db import ACCESS
from warpfold.app.tables.users import IN_FORCE, tokens, users

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


class RoleMismatch(ValueError):
    """The user exists with another role."""


@dataclass(frozen=True, slots=True)
class Principal:
    """The user whom a request comes from."""

    id: int
    name: str
    role: Role

    @property
    def is_admin(self) -> bool:
        return self.role is Role.ADMIN

    @property
    def only_reads(self) -> bool:
        return self.role is Role.VIEWER


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
    """A token as lists show it; `hint` are its first characters."""

    id: int
    user: str
    role: Role
    label: str
    hint: str
    created_at: datetime
    revoked_at: datetime | None
    expires_at: datetime | None


_OF_TOKEN = (
    select(users.c.id, users.c.name, users.c.role)
    .join(tokens, tokens.c.user_id == users.c.id)
    .where(tokens.c.hash == bindparam("hash"), IN_FORCE)
)


def principal_of(connection: Connection, token_hash: bytes) -> Principal | None:
    """The user of a token that is neither revoked nor expired."""
    row = connection.execute(_OF_TOKEN, {"hash": token_hash}).one_or_none()
    return None if row is None else Principal(row.id, row.name, Role(row.role))


def create_token(
    connection: Connection, user: str, role: Role | None = None, label: str = "", days: float | None = None
) -> str:
    """Make a token for `user`, who is created with `role` ("user" by default) if new; it expires after `days`, None:
    never. Returns the token: keep it.

    Raises RoleMismatch if the user exists with another role than the one given.
    """
    return issue_token(connection, user, role, label, days).token


def issue_token(
    connection: Connection, user: str, role: Role | None = None, label: str = "", days: float | None = None
) -> Issued:
    """Make a token like `create_token`; returns what lists will show of it, too."""
    connection.execute(
        upsert(users).values(name=user, role=role or Role.USER).on_conflict_do_nothing(index_elements=["name"])
    )
    row = connection.execute(select(users.c.id, users.c.role).where(users.c.name == user)).one()
    if role is not None and row.role != role:
        raise RoleMismatch(f"{user!r} exists and has the role {row.role}, not {role}")
    return _insert(connection, row.id, label, None if days is None else timedelta(days=days))


def rotate_token(connection: Connection, token_hash: bytes) -> Issued | None:
    """Replace a token by a new one of the same user, with its label and lifetime; the old one is useless at once. None
    if it was not in force."""
    old = connection.execute(
        update(tokens)
        .where(tokens.c.hash == token_hash, IN_FORCE)
        .values(revoked_at=func.now())
        .returning(tokens.c.user_id, tokens.c.label, (tokens.c.expires_at - tokens.c.created_at).label("lifetime"))
    ).one_or_none()
    if old is None:
        return None
    connection.execute(select(func.pg_notify(ACCESS, "")))
    return _insert(connection, old.user_id, old.label, old.lifetime)


def _insert(connection: Connection, user_id: int, label: str, lifetime: timedelta | None) -> Issued:
    made = mint()
    token_id = connection.execute(
        insert(tokens)
        .values(
            user_id=user_id,
            label=label,
            hint=made.hint,
            hash=made.hash,
            expires_at=None if lifetime is None else func.now() + lifetime,
        )
        .returning(tokens.c.id)
    ).scalar_one()
    [info] = list_tokens(connection, token_id)
    return Issued(info, made.token)


def list_tokens(connection: Connection, only: int | None = None, *, of_user: int | None = None) -> Sequence[TokenInfo]:
    """All tokens, oldest first, the revoked among them; with `only` the token of that id, with `of_user` those of
    one user."""
    statement = (
        select(
            tokens.c.id,
            users.c.name,
            users.c.role,
            tokens.c.label,
            tokens.c.hint,
            tokens.c.created_at,
            tokens.c.revoked_at,
            tokens.c.expires_at,
        )
        .join(users, users.c.id == tokens.c.user_id)
        .order_by(tokens.c.id)
    )
    if only is not None:
        statement = statement.where(tokens.c.id == only)
    if of_user is not None:
        statement = statement.where(tokens.c.user_id == of_user)
    rows = connection.execute(statement)
    return [TokenInfo(row[0], row[1], Role(row[2]), *row[3:]) for row in rows]


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
