"""The `Prefer: wait` header (RFC 7240)."""

import re

LONGEST_WAIT_S = 60
_WAIT = re.compile(r'(?:^|[,;\s])wait\s*=\s*"?(\d{1,6})"?\s*(?:$|[,;])', re.IGNORECASE)


def seconds_to_wait(prefer: str | None) -> int | None:
    """How long the request asks to be held, at most a minute; None if it does not ask."""
    found = None if prefer is None else _WAIT.search(prefer)
    return None if found is None else min(int(found[1]), LONGEST_WAIT_S)


def applied(wait_s: int | None) -> dict[str, str]:
    """The answer's headers: what was done about the preference."""
    return {} if wait_s is None else {"Preference-Applied": f"wait={wait_s}"}
