"""The number of threads that are worth starting."""

import os


def usable_cores() -> int:
    """Logical CPUs that this process may run on: fewer than the machine's where it is pinned or in a cpuset."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on every system
        return os.cpu_count() or 1
