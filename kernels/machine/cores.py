"""The number of threads that are worth starting."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_MOST: ContextVar[int | None] = ContextVar("most_cores", default=None)


def usable_cores() -> int:
    """Logical CPUs that this process may run on: fewer than the machine's where it is pinned or in a cpuset, and within
    `cores_at_most`."""
    try:
        cores = len(os.sched_getaffinity(0))
    except AttributeError:  # not every system has this call
        cores = os.cpu_count() or 1
    most = _MOST.get()
    return cores if most is None else min(cores, most)


@contextmanager
def cores_at_most(most: int) -> Iterator[None]:
    """Within the block this thread starts no more than `most` threads for one reduction: others share its machine."""
    token = _MOST.set(max(1, most))
    try:
        yield
    finally:
        _MOST.reset(token)
