"""SQL of users as an administrator sees them."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, func, select
from sqlalchemy.dialects.postgresql import insert as upsert

from warpfold.app.auth.access_tokens import Role
from warpfold.app.channels import ACCESS
from warpfold.app.tables.users import IN_FORCE, tokens, users


@dataclass(frozen=True, slots=True)
class UserInfo:
    """A user; `tokens` counts those in force: without one, a user cannot do anything."""

    name: str
    role: Role
    tokens: int
    created_at: datetime


_USERS = (
    select(users.c.name, users.c.role, func.count(tokens.c.id).label("tokens"), users.c.created_at)
    .outerjoin(tokens, (tokens.c.user_id == users.c.id) & IN_FORCE)
    .group_by(users.c.id)
    .order_by(users.c.name)
)


def list_users(connection: Connection) -> Sequence[UserInfo]:
    """All users by name."""
    return [_info(*row) for row in connection.execute(_USERS)]


def find_user(connection: Connection, name: str) -> UserInfo | None:
    """One user."""
    row = connection.execute(_USERS.where(users.c.name == name)).one_or_none()
    return None if row is None else _info(*row)


def put_user(connection: Connection, name: str, role: Role) -> UserInfo:
    """Give a user, who is created if new, a role, in force within milliseconds of the commit."""
    connection.execute(
        upsert(users).values(name=name, role=role).on_conflict_do_update(index_elements=["name"], set_={"role": role})
    )
    connection.execute(select(func.pg_notify(ACCESS, "")))
    return _info(*connection.execute(_USERS.where(users.c.name == name)).one())


def _info(name: str, role: str, in_force: int, created_at: datetime) -> UserInfo:
    return UserInfo(name, Role(role), in_force, created_at)
