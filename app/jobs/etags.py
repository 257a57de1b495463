"""Strong entity tags of jobs, and their comparison (RFC 9110, 8.8 and 13.1.2)."""

from uuid import UUID

from warpfold.app.jobs.repository import Stamp


def etag_of(job_id: UUID, stamp: Stamp) -> str:
    """Changes with everything that the answer shows but the estimate of its start, which is as old as the answer: the
    row's version, its children's, the place in the queue, the quota that it waits for."""
    return f'"{job_id.hex[-12:]}.{stamp.version}.{stamp.queue_position or 0}.{stamp.children}.{stamp.hold or ""}"'


def matches(if_none_match: str, etag: str) -> bool:
    """Whether one of the tags that the client holds is the current one; "*" is any."""
    if if_none_match == etag:
        return True
    held = (tag.strip().removeprefix("W/") for tag in if_none_match.split(","))
    return any(tag in (etag, "*") for tag in held)
