"""Page cursors: opaque to clients; inside, the name of a list and a key."""

import base64
import binascii

from warpfold.app.http.errors import Invalid

_LARGEST = (1 << 63) - 1


def cursor_of(listing: str, key: int) -> str:
    """The cursor of the page of `listing` that follows the row numbered `key`."""
    return base64.urlsafe_b64encode(f"{listing}:{key}".encode()).decode().rstrip("=")


def key_of(listing: str, cursor: str | None) -> int | None:
    """The row number in a cursor; None without a cursor. Raises Invalid for anything that `cursor_of` did not make."""
    if cursor is None:
        return None
    try:
        text = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True).decode("ascii")
        name, _, key = text.partition(":")
        number = int(key)
    except (binascii.Error, ValueError):
        raise _not_ours() from None
    if name != listing or not 0 <= number <= _LARGEST or cursor_of(listing, number) != cursor:
        raise _not_ours()
    return number


def _not_ours() -> Invalid:
    return Invalid.of("cursor", "is not a cursor of this list; take next_cursor from a page")
