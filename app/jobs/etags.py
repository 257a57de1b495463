"""Strong entity tags of jobs, and their comparison (RFC 9110, 8.8 and 13.1.2)."""

from uuid import UUID
from zlib import crc32

from warpfold.app.jobs.store import Stamp


def etag_of(job_id: UUID, stamp: Stamp) -> str:
    """Changes with everything that the answer shows but the estimate of its start, which is as old as the answer: the
    row's version, its children's, the place in the queue, the quota and the slots that it waits for."""
    told = f"{stamp.version}.{stamp.queue_position or 0}.{stamp.children}.{stamp.hold or ''}"
    slots = f".{crc32(stamp.slots.encode()):08x}" if stamp.slots else ""
    return f'"{job_id.hex[-12:]}.{told}{slots}"'


def matches(if_none_match: str, etag: str) -> bool:
    """Whether one of the tags that the client holds is the current one; "*" is any."""
    if if_none_match == etag:
        return True
    held = (tag.strip().removeprefix("W/") for tag in if_none_match.split(","))
    return any(tag in (etag, "*") for tag in held)
