"""Users as an administrator sees them, and the rules for their names, because names stand in lists, logs, terminals and
paths."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated

from pydantic import AfterValidator, StringConstraints
from sqlalchemy import Connection, func, select
from sqlalchemy.dialects.postgresql import insert as upsert

from warpfold.app.auth.access_tokens import Role, UserRemoved
from warpfold.app.db import ACCESS
from warpfold.app.tables.users import IN_FORCE, tokens, users

_LONGEST = 64


def checked_name(name: str) -> str:
    """Returns `name` unchanged. Raises ValueError for a name that is invisible, looks like another name, or cannot
    stand in a path."""
    whole = 1 <= len(name) <= _LONGEST and name.isprintable() and name == name.strip()
    if not whole or "/" in name or name in (".", ".."):
        raise ValueError(
            f"a name has 1 to {_LONGEST} printable characters, no space at its ends and no slash, and is not . or .."
        )
    return name


def checked_label(label: str) -> str:
    """Returns `label` unchanged. Raises ValueError for a label that is too long or invisible."""
    if len(label) > _LONGEST or not label.isprintable():
        raise ValueError(f"a label has at most {_LONGEST} printable characters")
    return label


UserName = Annotated[str, StringConstraints(min_length=1, max_length=_LONGEST), AfterValidator(checked_name)]
Label = Annotated[str, StringConstraints(max_length=_LONGEST), AfterValidator(checked_label)]


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
    .where(users.c.removed_at.is_(None))
    .group_by(users.c.id)
    .order_by(users.c.name)
)


def list_users(connection: Connection) -> Sequence[UserInfo]:
    """All users by name."""
    return [_info(*row) for row in connection.execute(_USERS)]


def find_user(connection: Connection, name: str) -> UserInfo | None:
    """The user with this name."""
    row = connection.execute(_USERS.where(users.c.name == name)).one_or_none()
    return None if row is None else _info(*row)


def put_user(connection: Connection, name: str, role: Role) -> UserInfo:
    """Give a user, who is created if new, a role, in force within milliseconds of the commit. Raises UserRemoved."""
    connection.execute(
        upsert(users).values(name=name, role=role).on_conflict_do_update(index_elements=["name"], set_={"role": role})
    )
    connection.execute(select(func.pg_notify(ACCESS, "")))
    row = connection.execute(_USERS.where(users.c.name == name)).one_or_none()
    if row is None:
        raise UserRemoved(f"{name!r} was removed; the name is free again once the last of the user's jobs is gone")
    return _info(*row)


def _info(name: str, role: str, in_force: int, created_at: datetime) -> UserInfo:
    return UserInfo(name, Role(role), in_force, created_at)
