"""File descriptors: each connection takes one, and service managers start processes with few."""

import resource

_MOST = 1 << 20
"""Some libraries walk through all that a process might have open; where nothing limits it, a thousand million."""


def raise_limit() -> int:
    """Raise this process's soft limit of open files to its hard limit, and return the limit in force."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _MOST if hard == resource.RLIM_INFINITY else min(hard, _MOST)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        return wanted
    return _MOST if soft == resource.RLIM_INFINITY else soft
