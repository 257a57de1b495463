"""Decimal numbers as they are written in JSON, in YAML and in forms."""

import math
from decimal import ROUND_05UP, Context, Decimal, InvalidOperation

EXACT = 1 << 53
"""Up to here a float64 stands for one integer only."""

_LONGEST_TEXT = 64
_STICKY_DIGITS = 40
"""A longer text of a number is cut to so many digits, of which the last says whether digits behind it were not 0."""


def float_or_text(text: str) -> float | str:
    """The float64 nearest to the decimal number `text`; or a text of that number where the float64 is not finite, and
    where the float64 is an integer of at most 2^53 and the number is not that integer. A reader of floats takes such a
    text, and a reader of integers refuses it.

    Raises ValueError where `text` is no decimal number."""
    number = float(text)
    if math.isfinite(number):
        if not number.is_integer() or abs(number) > EXACT:  # larger ones are read as integers by nobody
            return number
        try:
            exact = Decimal(text)
        except InvalidOperation:  # of an exponent that has more digits than Decimal reads
            return text
        if exact == int(number):  # a comparison with the float takes four times as long
            return number
        if len(text) > _LONGEST_TEXT:  # fewer digits, which have the same nearest float64
            return str(Context(prec=_STICKY_DIGITS, rounding=ROUND_05UP).plus(exact))
    return text
