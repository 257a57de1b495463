"""Access tokens, as a client manages them: one's own, and for an admin everybody's; and the audit log."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from typing import Any, TypeVar

from warpfold.client.answer import Answer
from warpfold.client.errors import Refused
from warpfold.client.exchange import Call, Steps, pages, send
from warpfold.client.http import httpx

T = TypeVar("T")


class TokenScope(StrEnum):
    """What a token may do: read; submit jobs and upload arrays; cancel, delete and share; and what only admins do."""

    READ = "read"
    SUBMIT = "submit"
    MANAGE = "manage"
    ADMIN = "admin"


_PAGE = 200
_OWN, _ALL = "/v1/users/me/tokens", "/v1/tokens"


class Token(Answer):
    """An access token, without its secret; `hint` are its first characters."""

    id: int
    user: str
    role: str
    label: str
    hint: str
    scopes: tuple[str, ...]
    created_at: datetime
    made_by: str | None
    last_used_at: datetime | None
    rotated_at: datetime | None
    old_secret_until: datetime | None
    expires_at: datetime | None
    revoked_at: datetime | None


class NewToken(Token):
    """A token that was just made, or got a new secret; `token` is the secret, which is shown this once."""

    token: str


class Tokens:
    """The access tokens of a service, as the user of a client may manage them: one's own, or as an admin everybody's.
    The methods return what `do` makes of a conversation: the answer, or for asyncio what is awaited."""

    def __init__(self, do: Callable[[Steps[Any]], Any]) -> None:
        self._do = do

    def list(self) -> Any:
        """Each `Token`, the removed among them: for an admin everybody's, else your own."""
        return self._do(_find())

    def create(
        self,
        user: str | None = None,
        *,
        role: str | None = None,
        label: str = "",
        days: float | None = None,
        scopes: Sequence[str] | None = None,
    ) -> Any:
        """A `NewToken` for yourself, or, as an admin, for a user, who is created with `role` if new. It expires after
        `days`, and may do what `scopes` say of what the role allows."""
        body: dict[str, Any] = {"label": label, "expires_in_days": days, "scopes": scopes and [*scopes]}
        if user is not None:
            body |= {"user": user, "role": role}
        return self._do(send(Call("POST", _OWN if user is None else _ALL, _made, body=body, once=True)))

    def rotate(self, token_id: int, *, both_hold_hours: float = 0.0) -> Any:
        """Give a token a new secret, and return it as a `NewToken`; the old one holds for so many hours longer."""
        hours = {"both_hold_hours": both_hold_hours}
        return self._do(
            _own_or_any(
                Call("POST", f"{_OWN}/{token_id}/rotate", _made, parameters=hours, once=True),
                Call("POST", f"{_ALL}/{token_id}/rotate", _made, parameters=hours, once=True),
            )
        )

    def remove(self, token_id: int) -> Any:
        """Remove a token: from now on it is refused."""
        own, of_anybody = (Call("DELETE", f"{path}/{token_id}", lambda _: None) for path in (_OWN, _ALL))
        return self._do(_own_or_any(own, of_anybody))


def _find() -> Steps[list[Token]]:
    try:
        return (yield from send(Call("GET", _ALL, _listed)))
    except Refused as error:
        if error.status != 403:
            raise
        return (yield from send(Call("GET", _OWN, _listed)))


def _own_or_any(own: Call[T], of_anybody: Call[T]) -> Steps[T]:
    """The token of one's own, or else anybody's, where one may."""
    try:
        return (yield from send(own))
    except Refused as none_of_mine:
        if none_of_mine.status != 404:
            raise
        try:
            return (yield from send(of_anybody))
        except Refused as error:
            raise (none_of_mine if error.status == 403 else error) from None


def _listed(answer: httpx.Response) -> list[Token]:
    return [Token.model_validate(row) for row in answer.json()["items"]]


def _made(answer: httpx.Response) -> NewToken:
    return NewToken.model_validate_json(answer.content)


class AuditEntry(Answer):
    """What somebody did that changed something; `actor` is None for a command on the machine of the service."""

    at: datetime
    actor: str | None
    key_id: int | None
    address: str
    request_id: str | None
    action: str
    thing: str
    owner: str | None
    details: Mapping[str, Any]


def audit(
    actor: str | None, action: str | None, thing: str | None, since: datetime | None, limit: int
) -> Steps[list[AuditEntry]]:
    """Up to `limit` entries, newest first."""
    wanted: dict[str, str | None] = {"actor": actor, "action": action, "thing": thing, "since": None}
    if since is not None:
        wanted["since"] = since.astimezone().isoformat()
    return pages("/v1/audit", AuditEntry, wanted, limit=limit, page=_PAGE)
