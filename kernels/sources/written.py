"""Decimal numbers as they are written in JSON, in YAML and in forms."""

import math
from decimal import ROUND_05UP, Context, Decimal, InvalidOperation

EXACT = 1 << 53
"""Up to here a float64 stands for one integer only."""

_LONGEST_TEXT = 64
_STICKY_DIGITS = 40
"""A longer text of a number is cut to so many digits, of which the last says whether digits behind it were not 0."""


def float_or_text(text: str) -> float | str:
    """The float64 nearest to the decimal number `text`, or the text where that float stands for another number
    (`nearest_or_text`).

    Raises ValueError where `text` is no decimal number."""
    return nearest_or_text(float(text), text)


def nearest_or_text(nearest: float, text: str) -> float | str:
    """`nearest`, which is the float64 nearest to the decimal number `text`; or a text of that number where `nearest` is
    not finite, and where `nearest` is an integer of at most 2^53 and the number is not that integer. A reader of floats
    takes such a text, and a reader of integers refuses it."""
    # Decimal takes four times as long to tell a number that is too small, of which there may be a million, from 0.
    is_too_small = not nearest and len(text) <= _LONGEST_TEXT and "1" <= text.lstrip("-0.")[:1] <= "9"
    if is_too_small or not math.isfinite(nearest):
        return text
    if not nearest.is_integer() or abs(nearest) > EXACT:  # larger ones are read as integers by nobody
        return nearest
    try:
        exact = Decimal(text)
    except InvalidOperation:  # of an exponent that has more digits than Decimal reads
        return text
    if exact == int(nearest):  # a comparison with the float takes four times as long
        return nearest
    if len(text) > _LONGEST_TEXT:  # fewer digits, which have the same nearest float64
        return str(Context(prec=_STICKY_DIGITS, rounding=ROUND_05UP).plus(exact))
    return text
