"""Beginnings of ids, by which people name jobs and batches. The ids that begin so are a range of the index of ids."""

import re
from typing import Annotated
from uuid import UUID

from pydantic import Field

from warpfold.contract.unions import said_as

_BEGINNING = r"[0-9A-Fa-f]{4}[0-9A-Fa-f-]{0,32}"
"""At least four digits: fewer fit so many jobs that a search for all of them would not be cheap."""
_DIGITS = 32

IdBeginning = Annotated[
    str,
    Field(pattern=f"^{_BEGINNING}$"),
    said_as("Should be an id, or its beginning of 4 characters or more"),
]


def is_beginning(text: str) -> bool:
    """Whether an id may begin with `text`, and few do."""
    return range_of_ids(text) is not None


def range_of_ids(beginning: str) -> tuple[UUID, UUID] | None:
    """The lowest and the highest id that begin so; None for a text with which no id begins."""
    digits = beginning.replace("-", "")
    if not re.fullmatch(_BEGINNING, beginning) or len(digits) > _DIGITS:
        return None
    first, last = UUID(digits.ljust(_DIGITS, "0")), UUID(digits.ljust(_DIGITS, "f"))
    return (first, last) if str(first).startswith(beginning.lower()) else None
