"""SQL of the dashboard's sessions: signing in exchanges a token for a cookie that expires and that one can end.

A session belongs to the token it was made with: revoking the token ends it. The session of somebody whom a provider
signed in (`app.auth.oidc`) belongs to the user. Like a token, its secret is random, shown
once, and kept only as a hash.
"""

import secrets
from datetime import timedelta

from sqlalchemy import Connection, Interval, bindparam, case, delete, func, insert, or_, select

from warpfold.app.auth.access_tokens import IS_SHOWN, PRINCIPAL, Seen, hash_of
from warpfold.app.db import ACCESS
from warpfold.app.tables.users import IN_FORCE, sessions, tokens, users

PREFIX = "ws_"
_RANDOM_BYTES = 32

_OF_SESSION = (
    select(*PRINCIPAL)
    .select_from(sessions)
    .outerjoin(tokens, tokens.c.id == sessions.c.token_id)
    .join(users, users.c.id == func.coalesce(sessions.c.user_id, tokens.c.user_id))
    .where(sessions.c.hash == bindparam("hash"), sessions.c.expires_at > func.now())
    .where(or_(sessions.c.token_id.is_(None), IN_FORCE), users.c.removed_at.is_(None))
)
# A session that an old secret opened ends with it.
_ENDS = func.least(
    func.now() + bindparam("lifetime", type_=Interval),
    case((tokens.c.old_hash == bindparam("hash"), tokens.c.old_until)),
)
_OPEN = (
    insert(sessions)
    .from_select(
        ["hash", "token_id", "expires_at"],
        select(
            bindparam("session_hash", type_=sessions.c.hash.type),
            tokens.c.id,
            _ENDS,
        ).where(IS_SHOWN, IN_FORCE),
    )
    .returning(sessions.c.token_id)
)


def open_session(connection: Connection, token: str, days: float, instead_of: str | None = None) -> str | None:
    """Open a session for the user of `token`; None if the token is unknown or revoked. It takes the place of the
    session that the browser had, which ends. Expired sessions are removed as well."""
    connection.execute(delete(sessions).where(sessions.c.expires_at < func.now()))
    secret = PREFIX + secrets.token_urlsafe(_RANDOM_BYTES)
    opened = connection.execute(
        _OPEN, {"session_hash": hash_of(secret), "hash": hash_of(token), "lifetime": timedelta(days=days)}
    ).one_or_none()
    if opened is None:
        return None
    if instead_of is not None:
        close_session(connection, instead_of)
    return secret


def open_session_of(connection: Connection, user_id: int, days: float) -> str:
    """Open a session for a user who signed in without a token; it may do all that the user's role allows."""
    secret = PREFIX + secrets.token_urlsafe(_RANDOM_BYTES)
    ends = func.now() + timedelta(days=days)
    connection.execute(insert(sessions).values(hash=hash_of(secret), user_id=user_id, expires_at=ends))
    return secret


def close_session(connection: Connection, secret: str) -> bool:
    """Make a session useless, in every api process; returns whether there was one."""
    closed = connection.execute(delete(sessions).where(sessions.c.hash == hash_of(secret))).rowcount
    connection.execute(select(func.pg_notify(ACCESS, "")))
    return bool(closed)


def close_sessions_of(connection: Connection, user_id: int) -> int:
    """End all sessions of a user, whichever token they were opened with; returns how many."""
    of_user = select(tokens.c.id).where(tokens.c.user_id == user_id)
    theirs = or_(sessions.c.token_id.in_(of_user), sessions.c.user_id == user_id)
    closed = connection.execute(delete(sessions).where(theirs)).rowcount
    connection.execute(select(func.pg_notify(ACCESS, "")))
    return closed


def principal_of_session(connection: Connection, session_hash: bytes) -> Seen | None:
    """The user of a session that has not expired and whose token was not revoked."""
    row = connection.execute(_OF_SESSION, {"hash": session_hash}).one_or_none()
    return None if row is None else Seen.of(row)
