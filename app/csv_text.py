"""CSV (RFC 4180) of values, which a spreadsheet shows and does not compute.

A spreadsheet takes a cell that begins with =, +, - or @ for a formula, which may send what else the sheet holds to
whoever wrote it. Texts of users that begin so get an apostrophe in front, which spreadsheets do not show. Numbers stay
as they are.
"""

import csv
import io
import re
from collections.abc import Iterable, Sequence
from typing import Any

_FORMULA = ("=", "+", "-", "@", "\t", "\r")
_NUMBER = re.compile(r"[+-](\d[\d.]*([eE][+-]?\d+)?|0x[\da-f.]+p[+-]\d+|inf|nan|P[\dDTHMS.]+)")
"""A number in digits or as Python's float.hex prints it, or a duration."""


def cell(value: Any) -> Any:
    """A value as it stands in CSV."""
    if type(value) is str and value.startswith(_FORMULA) and not _NUMBER.fullmatch(value):
        return f"'{value}"
    return value


def cells(values: Sequence[Any]) -> Sequence[Any]:
    """A column as it stands in CSV."""
    return [cell(value) for value in values] if str in set(map(type, values)) else values


class CsvText:
    """Rows of CSV behind a line of names, to be taken piece by piece."""

    def __init__(self, names: Iterable[str], *, begun: bool = False) -> None:
        """The line of names is left out of a text that has `begun` elsewhere."""
        self._text = io.StringIO()
        self._writer = csv.writer(self._text)
        if not begun:
            self._writer.writerow([cell(name) for name in names])

    def add(self, rows: Iterable[Iterable[Any]]) -> None:
        """Write rows, whose texts are `cells` already."""
        self._writer.writerows(rows)

    def add_numbers(self, columns: Iterable[Iterable[str]]) -> None:
        """Write one row or more of texts of numbers, of which none is quoted, column by column: in half the time."""
        self._text.write("\r\n".join(map(",".join, zip(*columns, strict=True))) + "\r\n")

    def taken(self) -> bytes:
        """The bytes that were written since the last call."""
        written = self._text.getvalue().encode()
        self._text.seek(0)
        self._text.truncate()
        return written
