"""SQL of users and tokens."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from sqlalchemy import Connection, bindparam, func, insert, select, update
from sqlalchemy.dialects.postgresql import insert as upsert

from warpfold.app.auth.models import tokens, users
from warpfold.app.auth.tokens import mint
from warpfold.app.channels import ACCESS


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


_OF_TOKEN = (
    select(users.c.id, users.c.name, users.c.role)
    .join(tokens, tokens.c.user_id == users.c.id)
    .where(tokens.c.hash == bindparam("hash"), tokens.c.revoked_at.is_(None))
)


def principal_of(connection: Connection, token_hash: bytes) -> Principal | None:
    """The user of a token that is not revoked."""
    row = connection.execute(_OF_TOKEN, {"hash": token_hash}).one_or_none()
    return None if row is None else Principal(row.id, row.name, Role(row.role))


def create_token(connection: Connection, user: str, role: Role | None = None, label: str = "") -> str:
    """Make a token for `user`, who is created with `role` ("user" by default) if new. Returns the token: keep it.

    Raises RoleMismatch if the user exists with another role than the one given.
    """
    return issue_token(connection, user, role, label).token


def issue_token(connection: Connection, user: str, role: Role | None = None, label: str = "") -> Issued:
    """The same, with what lists will show of it."""
    connection.execute(
        upsert(users).values(name=user, role=role or Role.USER).on_conflict_do_nothing(index_elements=["name"])
    )
    row = connection.execute(select(users.c.id, users.c.role).where(users.c.name == user)).one()
    if role is not None and row.role != role:
        raise RoleMismatch(f"{user!r} exists and has the role {row.role}, not {role}")
    made = mint()
    token_id = connection.execute(
        insert(tokens).values(user_id=row.id, label=label, hint=made.hint, hash=made.hash).returning(tokens.c.id)
    ).scalar_one()
    [info] = list_tokens(connection, token_id)
    return Issued(info, made.token)


def list_tokens(connection: Connection, only: int | None = None) -> Sequence[TokenInfo]:
    """All tokens, oldest first, the revoked among them; or only the one with an id."""
    statement = (
        select(
            tokens.c.id,
            users.c.name,
            users.c.role,
            tokens.c.label,
            tokens.c.hint,
            tokens.c.created_at,
            tokens.c.revoked_at,
        )
        .join(users, users.c.id == tokens.c.user_id)
        .order_by(tokens.c.id)
    )
    rows = connection.execute(statement if only is None else statement.where(tokens.c.id == only))
    return [TokenInfo(i, name, Role(role), label, hint, made, gone) for i, name, role, label, hint, made, gone in rows]


def revoke_token(connection: Connection, token_id: int) -> bool:
    """Make a token useless, within milliseconds of the commit. False if there is no such token in force."""
    revoked = connection.execute(
        update(tokens).where(tokens.c.id == token_id, tokens.c.revoked_at.is_(None)).values(revoked_at=func.now())
    ).rowcount
    connection.execute(select(func.pg_notify(ACCESS, "")))
    return bool(revoked)


def any_admin(connection: Connection) -> bool:
    """Whether an admin's token is in force."""
    of_admin = (
        select(tokens.c.id)
        .join(users, users.c.id == tokens.c.user_id)
        .where(users.c.role == Role.ADMIN, tokens.c.revoked_at.is_(None))
    )
    return connection.execute(select(of_admin.exists())).scalar_one()
