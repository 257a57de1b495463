"""What a request needs of its key: the one table of routes, of the api and of the dashboard, that `Principal.may`
answers for."""

from collections.abc import Iterable, Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Literal


class Scope(StrEnum):
    """What a key may do: read; submit jobs and upload arrays; manage what is its user's, which is to cancel, delete and
    share; and what only admins do."""

    READ = "read"
    SUBMIT = "submit"
    MANAGE = "manage"
    ADMIN = "admin"

    @property
    def rank(self) -> int:
        """Its place in lists."""
        return list(Scope).index(self)


Need = Scope | Literal["any", "whole"]
"""What a route needs: a scope; `any` key in force, where the route shows or replaces only what is the key's own; or a
key that is `whole`, with all scopes of its user's role, where it makes or removes keys: no key makes one that may more
than itself."""

_READING = frozenset({"GET", "HEAD", "OPTIONS"})
_OWN: Mapping[str, Need] = MappingProxyType(
    {
        "GET /v1/users/me": "any",
        "POST /v1/users/me/tokens/rotate": "any",
        "GET /v1/uploads/{upload_id}": "any",  # of one's own, also for a key that only submits
        "GET /v1/users/me/tokens": Scope.READ,
        "GET /account": Scope.READ,
    }
)
_SUBMITTING = frozenset(
    {
        *("POST /v1/jobs", "POST /v1/batches", "POST /v1/datasets", "POST /v1/uploads"),
        *("PATCH /v1/uploads/{upload_id}", "DELETE /v1/uploads/{upload_id}"),
        *("POST /v1/sources/inspect", "POST /v1/states/merge", "POST /presets/{name}/run", "POST /datasets"),
    }
)
_SUBMITTING_PAGES = ("/jobs/new", "/batches/new")
_ADMINISTERING = ("/v1/users", "/v1/tokens", "/v1/audit", "/admin")
_OF_WORKERS_AND_QUOTAS = ("/v1/workers/", "/v1/quotas/")


def needed(method: str, path: str) -> Need:
    """What a request needs, by the path of its route as the OpenAPI document has it. A route that is not named here
    needs `read` where it reads, and `manage` otherwise."""
    route = f"{method} {path}"
    if route in _OWN:
        return _OWN[route]
    if _within(path, ("/v1/users/me", "/account")):
        return "whole"
    if _within(path, _ADMINISTERING) or (method not in _READING and path.startswith(_OF_WORKERS_AND_QUOTAS)):
        return Scope.ADMIN
    if route in _SUBMITTING or _within(path, _SUBMITTING_PAGES):
        return Scope.SUBMIT
    return Scope.READ if method in _READING else Scope.MANAGE


def _within(path: str, prefixes: Iterable[str]) -> bool:
    return any(path == prefix or path.startswith(f"{prefix}/") for prefix in prefixes)


def scopes_in(text: str | None) -> frozenset[Scope] | None:
    """The scopes of a key as its row has them; None for a key with all scopes of its user's role, as keys are that were
    made before there were scopes."""
    return None if text is None else frozenset(Scope(word) for word in text.split())


def text_of(scopes: Iterable[Scope] | None) -> str | None:
    """The scopes of a key as its row keeps them."""
    if scopes is None:
        return None
    kept = set(scopes)
    return " ".join(scope.value for scope in Scope if scope in kept)
