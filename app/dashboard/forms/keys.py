"""What people type into the form of a new key, and into that of a rotation."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, Any

from fastapi import Form

from warpfold.app.admin.own_access import MOST_HOURS

Text = Annotated[str, Form(max_length=128)]
TypedKey = Mapping[str, Any]
"""The fields of an OwnTokenRequest or a TokenRequest, as they were typed."""
NOTHING_TYPED: TypedKey = MappingProxyType({})
BothHold = Annotated[float, Form(ge=0, le=MOST_HOURS, allow_inf_nan=False)]


def typed_key(
    label: Text = "", days: Text = "", scopes: Annotated[tuple[str, ...], Form(max_length=8)] = ()
) -> TypedKey:
    """The fields that every form of a new key has. A key that may do all is one that follows its user's role."""
    return {"label": label.strip(), "expires_in_days": number_of(days), "scopes": list(scopes)}


def number_of(text: str) -> int | float | str | None:
    """The number that `text` is, None for no text; text that is no number stays, to be refused with its words."""
    text = text.strip()
    try:
        return None if not text else int(text) if text.isdecimal() else float(text)
    except ValueError:
        return text
