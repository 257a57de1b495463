"""How text is to be read: what stands between cells, how numbers are written, which words are nulls, and which columns
are words."""

import re
from collections.abc import Collection
from dataclasses import dataclass, fields
from functools import cached_property

from warpfold.kernels.errors import InvalidInput

NULL_WORDS = ("NA", "N/A", "n/a", "#N/A", "NULL", "null")
"""The words that are nulls in columns of numbers, where nothing else is said. NaN is a number."""

SPACES = " \u00a0\u202f\u2009"
"""What groups digits where spaces do: a space, and those that keep a number on its line."""

NO_QUOTE = 256
"""What stands for a quote where there is none: no byte."""


@dataclass(frozen=True, slots=True)
class TextOptions:
    """What a request says of a text; a field that is None is told by the text itself (`text_sniffing.py`).
    `of_name` is the delimiter that the name of the file tells."""

    delimiter: str | None = None
    quote: str | None = None
    decimal: str | None = None
    thousands: str | None = None
    encoding: str | None = None
    comment: str | None = None
    header: bool | None = None
    null_words: tuple[str, ...] | None = None
    words: tuple[str, ...] = ()
    sheet: str | int | None = None
    of_name: str | None = None

    def check_unused(self, used: Collection[str] = ()) -> None:
        """Raise InvalidInput naming a field that is set, that is none of those that are `used`, and that means nothing
        to a file that is not text."""
        self.check_no_sheet("sheet" in used)
        for field in fields(self):
            if field.name not in ("of_name", "sheet", *used) and getattr(self, field.name) not in (None, ()):
                raise InvalidInput(f"is not text, which `{field.name}` is for: leave `{field.name}` out", field.name)

    def check_no_sheet(self, has_sheets: bool = False) -> None:
        """Raise InvalidInput where a sheet is named of a file that has no sheets."""
        if self.sheet is not None and not has_sheets:
            raise InvalidInput("is no .xlsx workbook, which `sheet` is for: leave `sheet` out", "sheet")


@dataclass(frozen=True)
class Dialect:
    """`delimiter` stands between two cells, and `quote` around one; an empty text stands for no quote. A number has
    the mark `decimal` before its fraction, and `thousands`, unless it is empty, between groups of three digits. A line
    that begins with `comment`, unless it is empty, is none. With a `header` the first row has the names of the columns.

    Of a workbook, `sheet` is the name of the sheet.

    `null_words` are nulls in every column; None stands for `NULL_WORDS` in columns of numbers, times and truth values,
    and for no word in columns of words. An empty cell is a null in any case, and a cell in quotes is none. The columns
    `words` are words, whatever they hold."""

    delimiter: str = ","
    null_words: tuple[str, ...] | None = None
    words: tuple[str, ...] = ()
    quote: str = '"'
    decimal: str = "."
    thousands: str = ""
    encoding: str = "utf-8"
    comment: str = ""
    header: bool = True
    sheet: str = ""

    @property
    def nulls_of_numbers(self) -> tuple[str, ...]:
        """The texts of a cell that are nulls in a column of numbers."""
        return ("", *(NULL_WORDS if self.null_words is None else self.null_words))

    @property
    def nulls_of_words(self) -> tuple[str, ...]:
        """The texts of a cell that are nulls in a column of words."""
        return ("", *(self.null_words or ()))

    @property
    def has_numbers_as_nulls(self) -> bool:
        """Whether a null may be written as a number, such as −999."""
        return any(word[:1] in "+-.,0123456789" for word in self.nulls_of_numbers if word)

    @property
    def quote_byte(self) -> int:
        """The byte of the quote; NO_QUOTE where there is none."""
        return ord(self.quote) if self.quote else NO_QUOTE

    @property
    def is_recoded(self) -> bool:
        """Whether the bytes of a file are not yet rows of UTF-8."""
        return self.encoding != "utf-8" or bool(self.comment)

    @cached_property
    def number(self) -> "re.Pattern[str]":
        """What a word of this dialect looks like that is a number with a decimal mark, with groups of digits, or
        without."""
        return re.compile(self.number_pattern, re.ASCII)

    @property
    def number_pattern(self) -> str:
        """The same, as a text that re and RE2 read."""
        group = f"[{SPACES if self.thousands == ' ' else re.escape(self.thousands)}]" if self.thousands else ""
        grouped = f"|[1-9][0-9]{{0,2}}(?:{group}[0-9]{{3}})+" if group else ""
        mark = re.escape(self.decimal)
        return f"^[+-]?(?:(?:[0-9]+{grouped})(?:{mark}[0-9]*)?|{mark}[0-9]+)(?:[eE][+-]?[0-9]+)?$"

    def plain(self, word: str) -> str:
        """A number of this dialect as it is written with a decimal point and without groups. Other words stay as they
        are."""
        if not self.number.fullmatch(word):
            return word
        for mark in SPACES if self.thousands == " " else self.thousands:
            word = word.replace(mark, "")
        return word.replace(self.decimal, ".")
