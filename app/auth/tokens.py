"""Tokens as strings: made here, shown once, kept only as hashes."""

import hashlib
import secrets
from dataclasses import dataclass

PREFIX = "wf_"
MOST_DAYS = 36500.0
"""Longest lifetime of a token that expires."""

_RANDOM_BYTES = 32
_HINT_LENGTH = len(PREFIX) + 6


@dataclass(frozen=True, slots=True)
class Minted:
    """A new token. `token` is the secret itself; only `hash` and `hint` may be stored."""

    token: str
    hash: bytes
    hint: str


def mint() -> Minted:
    """A token of 256 random bits."""
    token = PREFIX + secrets.token_urlsafe(_RANDOM_BYTES)
    return Minted(token, hash_of(token), token[:_HINT_LENGTH])


def hash_of(token: str) -> bytes:
    """SHA-256, shape (32,) bytes. A token is random, not a password: no salt or slow hash is needed."""
    return hashlib.sha256(token.encode()).digest()
