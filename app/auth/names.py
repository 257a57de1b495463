"""Names of users and labels of tokens: they stand in lists, logs, terminals and paths."""

from typing import Annotated

from pydantic import AfterValidator, StringConstraints

_LONGEST = 64


def checked_name(name: str) -> str:
    """`name` as it is. Raises ValueError for one that cannot be seen, told from another, or put into a path."""
    whole = 1 <= len(name) <= _LONGEST and name.isprintable() and name == name.strip()
    if not whole or "/" in name or name in (".", ".."):
        raise ValueError(
            f"a name has 1 to {_LONGEST} printable characters, no space at its ends and no slash, and is not . or .."
        )
    return name


def checked_label(label: str) -> str:
    """`label` as it is. Raises ValueError for one too long, or that cannot be seen."""
    if len(label) > _LONGEST or not label.isprintable():
        raise ValueError(f"a label has at most {_LONGEST} printable characters")
    return label


UserName = Annotated[str, StringConstraints(min_length=1, max_length=_LONGEST), AfterValidator(checked_name)]
Label = Annotated[str, StringConstraints(max_length=_LONGEST), AfterValidator(checked_label)]
