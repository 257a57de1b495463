"""Which of several media types an `Accept` header prefers (RFC 9110, 12.5.1)."""

from collections.abc import Sequence


def preferred(accept: str | None, offered: Sequence[str]) -> str | None:
    """The offered type that `accept` likes best, the earlier of equals; None if it accepts none of them."""
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
    """What the most specific range that covers `media_type` says."""
    whole, kind, anything = media_type, media_type.split("/", maxsplit=1)[0] + "/*", "*/*"
    said = dict(reversed(ranges))
    return next((said[name] for name in (whole, kind, anything) if name in said), 0.0)
