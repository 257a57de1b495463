"""Read-only links to jobs: whoever has one sees the report of that job and nothing else, without signing in, until the
link expires or is removed. Like a token, the secret of a link is random, shown once, and kept only as a hash."""

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from sqlalchemy import Connection, delete, func, insert, select

from warpfold.app.auth.access_tokens import hash_of
from warpfold.app.tables.sharing import job_links

PREFIX = "wl_"
MOST_DAYS = 366.0
MOST_LINKS = 100
_RANDOM_BYTES = 32


@dataclass(frozen=True, slots=True)
class Link:
    """A link as lists show it."""

    id: int
    made_by: str
    created_at: datetime
    expires_at: datetime


class TooManyLinks(ValueError):
    """The job has as many links as a job may have."""


_SHOWN = (job_links.c.id, job_links.c.made_by, job_links.c.created_at, job_links.c.expires_at)
_IN_FORCE = job_links.c.expires_at > func.now()


def make(connection: Connection, job_id: UUID, made_by: str, days: float) -> tuple[Link, str]:
    """Make a link to a job; returns it and its secret. Expired links of the job are removed. Raises TooManyLinks."""
    connection.execute(delete(job_links).where(job_links.c.job_id == job_id, ~_IN_FORCE))
    count = select(func.count()).where(job_links.c.job_id == job_id)
    if connection.execute(count).scalar_one() >= MOST_LINKS:
        raise TooManyLinks(f"a job has at most {MOST_LINKS} links; remove some")
    secret = PREFIX + secrets.token_urlsafe(_RANDOM_BYTES)
    ends = func.now() + timedelta(days=days)
    row = insert(job_links).values(job_id=job_id, hash=hash_of(secret), made_by=made_by, expires_at=ends)
    return Link(*connection.execute(row.returning(*_SHOWN)).one()), secret


def of_job(connection: Connection, job_id: UUID) -> Sequence[Link]:
    """The links to a job that are in force, oldest first."""
    rows = select(*_SHOWN).where(job_links.c.job_id == job_id, _IN_FORCE).order_by(job_links.c.id)
    return [Link(*row) for row in connection.execute(rows)]


def remove(connection: Connection, job_id: UUID, link_id: int) -> bool:
    """Remove a link; False if the job has no such link."""
    link = job_links.c.job_id == job_id, job_links.c.id == link_id
    return bool(connection.execute(delete(job_links).where(*link)).rowcount)


def job_of(connection: Connection, secret: str) -> UUID | None:
    """The job that a link leads to; None if there is no such link in force."""
    if not secret.startswith(PREFIX):
        return None
    link = select(job_links.c.job_id).where(job_links.c.hash == hash_of(secret), _IN_FORCE)
    return connection.execute(link).scalar_one_or_none()
