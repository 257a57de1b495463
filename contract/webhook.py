"""Where to tell of a job's end, as a submission names it."""

import base64
from typing import Annotated

from pydantic import AfterValidator, ConfigDict, Field, HttpUrl, SerializationInfo, field_serializer

from warpfold.contract.frozen import SHOW_SECRETS, Frozen

SECRET_PREFIX = "whsec_"  # noqa: S105 (the scheme's, not a secret)

_SHORTEST, _LONGEST = 24, 64
_LONGEST_LABEL, _LONGEST_NAME = 63, 253  # RFC 1035


def _plain(url: HttpUrl) -> HttpUrl:
    if url.username or url.password:
        raise ValueError("must not carry a user or a password: the signature identifies the sender")
    if url.fragment:
        raise ValueError("must not have a fragment: it would never be sent")
    _check_host((url.host or "").removesuffix("."))
    return url


def _check_host(host: str) -> None:
    """A name that no name server could hold is refused here: looking it up would fail at every attempt."""
    if host.startswith("["):  # an address of IPv6
        return
    longest = max(host.split("."), key=len)
    if len(longest) > _LONGEST_LABEL:
        raise ValueError(
            f"has a part of {len(longest)} characters in its host name ({longest[:16]}…); names have at most "
            f"{_LONGEST_LABEL} between dots"
        )
    if len(host) > _LONGEST_NAME:
        raise ValueError(f"has a host name of {len(host)} characters; names have at most {_LONGEST_NAME}")
    if "" in host.split("."):
        raise ValueError("has a host name with nothing between two dots")


def _secret(secret: str) -> str:
    try:
        key = base64.b64decode(secret.removeprefix(SECRET_PREFIX), validate=True)
    except ValueError:
        key = b""
    if not secret.startswith(SECRET_PREFIX) or not _SHORTEST <= len(key) <= _LONGEST:
        raise ValueError(
            f"must be {SECRET_PREFIX} and {_SHORTEST} to {_LONGEST} random bytes in base64 (Standard Webhooks)"
        )
    return secret


class Webhook(Frozen):
    """A receiver of messages, and the secret that signs its messages (https://www.standardwebhooks.com)."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"url": "https://hooks.example.org/warpfold"}]})

    url: Annotated[HttpUrl, AfterValidator(_plain)] = Field(
        description="An http or https address; redirects are not followed."
    )
    secret: Annotated[str, AfterValidator(_secret)] | None = Field(
        None,
        max_length=128,
        repr=False,
        description="The secret, whsec_…, which is never shown again. If it is left out, your own secret, made at "
        "/v1/webhooks/secret, signs the messages.",
    )

    @field_serializer("secret")
    def _hidden(self, secret: str | None, info: SerializationInfo) -> str | None:
        return secret if info.context == SHOW_SECRETS else None
