"""Headers by which a request asks for a form of answer: `Accept` and `If-None-Match` (RFC 9110), `Prefer` (RFC
7240)."""

import re
from collections.abc import Sequence

LONGEST_WAIT_S = 60
_WAIT = re.compile(r'(?:^|[,;\s])wait\s*=\s*"?(\d{1,6})"?\s*(?:$|[,;])', re.IGNORECASE)


def preferred(accept: str | None, offered: Sequence[str]) -> str | None:
    """The type among `offered` that `accept` prefers, the earlier of equals; None if it accepts no offered type."""
    if not accept:
        return offered[0]
    ranges = [_range(part) for part in accept.split(",")]
    best, best_quality = None, 0.0
    for media_type in offered:
        quality = _quality(media_type, ranges)
        if quality > best_quality:
            best, best_quality = media_type, quality
    return best


def _range(part: str) -> tuple[str, float]:
    name, *parameters = (piece.strip().lower() for piece in part.split(";"))
    quality = 1.0
    for parameter in parameters:
        key, _, value = parameter.partition("=")
        if key.strip() == "q":
            try:
                quality = min(1.0, max(0.0, float(value)))
            except ValueError:
                quality = 0.0
    return name, quality


def _quality(media_type: str, ranges: Sequence[tuple[str, float]]) -> float:
    """The quality of the most specific range that covers `media_type`."""
    whole, kind, anything = media_type, media_type.split("/", maxsplit=1)[0] + "/*", "*/*"
    qualities = dict(reversed(ranges))
    return next((qualities[name] for name in (whole, kind, anything) if name in qualities), 0.0)


def seconds_to_wait(prefer: str | None) -> int | None:
    """How long the request asks the server to wait for a job's end, at most a minute; None if it does not ask."""
    wait = None if prefer is None else _WAIT.search(prefer)
    return None if wait is None else min(int(wait[1]), LONGEST_WAIT_S)


def applied(wait_s: int | None) -> dict[str, str]:
    """The headers of an answer that was held for up to `wait_s`; none where the request did not ask for that."""
    return {} if wait_s is None else {"Preference-Applied": f"wait={wait_s}"}


def matches(if_none_match: str, etag: str) -> bool:
    """Whether one of the tags that the client holds is the current one; "*" is any (RFC 9110, 13.1.2)."""
    if if_none_match == etag:
        return True
    held = (tag.strip().removeprefix("W/") for tag in if_none_match.split(","))
    return any(tag in (etag, "*") for tag in held)
