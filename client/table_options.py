"""The options of tables in files: which rows, what their nulls are, and how text is written (docs/sources.md)."""

from collections.abc import Mapping, Sequence
from typing import Any, TypedDict


class TableOptions(TypedDict, total=False):
    """The options of a table in a file, beside its column."""

    filter: Mapping[str, Any]
    null_policy: str
    text: str
    delimiter: str
    quote: str
    decimal: str
    thousands: str
    encoding: str
    comment: str
    header: bool
    null_words: Sequence[str]
    words: Sequence[str]
    sheet: str | int


OF_TABLES = frozenset(TableOptions.__annotations__)
