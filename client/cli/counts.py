"""Counts on the command line: whole numbers, which may be written as people write them, such as 1e6."""

from collections.abc import Callable
from decimal import Decimal, InvalidOperation
from typing import Annotated, Any

import typer

_MOST_DIGITS = 20


def count_option(text: str, *names: str, least: int = 0, **others: Any) -> Any:
    """An option that is a count of at least so many; `text` is its help."""
    return typer.Option(*names, metavar="N", parser=_reader(least), help=text, **others)


def _reader(least: int) -> Callable[[str | int], int]:
    def count(text: str | int) -> int:
        try:
            number = Decimal(text)
            whole = number.is_finite() and number.adjusted() < _MOST_DIGITS and number == number.to_integral_value()
        except InvalidOperation:
            whole = False
        if not whole:
            raise typer.BadParameter(f"{text!r} is not a whole number, such as 1000 or 1e6")
        if number < least:
            raise typer.BadParameter(f"{text!r} is less than {least}")
        return int(number)

    return count


Limit = Annotated[int, count_option("How many at most.", "--limit", "-n", least=1)]
