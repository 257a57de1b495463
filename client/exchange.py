"""The common part of the synchronous and the asynchronous client: requests as values, and conversations. A conversation
(`Steps`) is a generator that yields requests and is sent their answers. It does no I/O, so that either client can run
it.

The methods of both clients are the same functions: each hands a conversation to its client, and returns what the client
gives, which is a coroutine of an `AsyncClient`.
"""

import json
import ssl
from collections.abc import AsyncIterator, Callable, Coroutine, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import wraps
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Concatenate, Generic, ParamSpec, Protocol, TypeVar, overload

from pydantic import BaseModel

from warpfold.client.errors import FieldError, Refused, Unreachable
from warpfold.client.http import httpx

if TYPE_CHECKING:
    from warpfold.client.live_batches import AsyncLiveBatch, LiveBatch
    from warpfold.client.live_jobs import AsyncLiveJob, LiveJob

P = ParamSpec("P")
T = TypeVar("T")
U = TypeVar("U")
M = TypeVar("M", bound=BaseModel)

# Waiting for a connection has no time limit, because any number of threads and tasks may share the connections, and
# requests that the service holds take many of them.
READ_S = 60.0
TIMEOUTS = httpx.Timeout(10.0, read=READ_S, write=60.0, pool=None)

CONTENT = "warpfold.content"
"""The extension of a request that holds the Content which it uploads."""

PAST_PROXIES: Mapping[str, None] = MappingProxyType(
    {f"all://{host}": None for host in ("127.0.0.1", "localhost", "[::1]")}
)
"""This machine is asked directly: a proxy of the environment would look for the service on its own."""

_NO_TLS = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


def certificates(url: str) -> ssl.SSLContext | bool:
    """The argument `verify` of httpx for the service at `url`. To load the machine's certificates takes longer than a
    request, and an address without TLS needs no certificates."""
    return True if httpx.URL(url).scheme == "https" else _NO_TLS


Parameter = str | int | float | bool
Parameters = Mapping[str, Parameter | Sequence[str] | None]


class Interrupted(Unreachable):
    """A request that must be sent only once broke off, and nobody knows how much of it arrived."""


class Content(Protocol):
    """The body of an upload: its length, and its bytes from `start` on piece by piece, as often as it is sent. A piece
    holds until the next is asked for."""

    @property
    def length(self) -> int: ...

    def pieces(self, start: int = 0) -> Iterator[bytes | memoryview]: ...


class Receiver(Protocol):
    """Where the body of a download goes piece by piece, so that it need not fit in memory."""

    position: int

    def headers(self) -> Mapping[str, str]: ...

    def begin(self, response: httpx.Response) -> None: ...

    def take(self, piece: bytes) -> None: ...


@dataclass(frozen=True, slots=True)
class Portion:
    """Which part of all that is uploaded a content is: where it begins in the `whole` of so many bytes, and the name of
    its file, number `file` of `files`."""

    name: str
    start: int
    whole: int
    file: int = 1
    files: int = 1


@dataclass(frozen=True, slots=True)
class Call(Generic[T]):
    """One request, and how its answer is read. `body` is sent as JSON; parameters that are None are left out.

    Statuses that are `expected` are read; all others of 300 and more raise Refused within the conversation. The request
    is sent after `after_s` seconds, and its answer may take `read_s` seconds. A request that breaks off is repeated,
    unless it must be sent only `once`: then Interrupted is raised within the conversation. A `receiver` gets the body
    of the answer, and a download that broke off goes on where it stood. `beside` is a call to be sent meanwhile, a
    `client.beside.Beside`. The `portion` says of a content which part of an upload it is.
    """

    method: str
    path: str
    read: Callable[[httpx.Response], T]
    parameters: Parameters = field(default_factory=dict)
    body: object = None
    headers: Mapping[str, str] = field(default_factory=dict)
    content: Content | None = None
    portion: Portion | None = None
    receiver: Receiver | None = None
    expected: tuple[int, ...] = ()
    once: bool = False
    after_s: float = 0.0
    read_s: float = READ_S
    beside: Any = None

    def request(self, http: httpx.Client | httpx.AsyncClient) -> httpx.Request:
        """The request as `http` sends it. Raises ValueError for a body that JSON cannot represent."""
        content: bytes | Iterator[bytes] | AsyncIterator[bytes] | None = self.json()
        if self.content is not None:
            content = (
                _pieces(self.content) if isinstance(http, httpx.AsyncClient) else map(bytes, self.content.pieces())
            )
        return http.build_request(
            self.method,
            self.path,
            params=self.query(),
            content=content,
            headers=self.all_headers(),
            timeout=TIMEOUTS if self.read_s == READ_S else httpx.Timeout(10.0, read=self.read_s, write=60.0, pool=None),
            extensions=None if self.content is None else {CONTENT: self.content},
        )

    def query(self) -> httpx.QueryParams:
        """The parameters as text."""
        pairs: list[tuple[str, str]] = []
        for name, value in self.parameters.items():
            if value is None:
                continue
            several = value if isinstance(value, Sequence) and not isinstance(value, str) else [value]
            pairs += [(name, str(item).lower() if isinstance(item, bool) else str(item)) for item in several]
        return httpx.QueryParams(tuple(pairs))

    def all_headers(self) -> dict[str, str]:
        """The headers of the request, and those that its body needs."""
        if self.content is not None:
            return {
                "Content-Type": "application/octet-stream",
                "Content-Length": str(self.content.length),
                **self.headers,
            }
        ranges = {} if self.receiver is None else self.receiver.headers()
        return {**({} if self.body is None else {"Content-Type": "application/json"}), **self.headers, **ranges}

    def json(self) -> bytes | None:
        """The body as JSON of RFC 8259. Raises ValueError for a value that JSON cannot represent, such as a NaN or a
        set."""
        if self.body is None:
            return None
        return json.dumps(self.body, allow_nan=False, ensure_ascii=False).encode()

    def answer(self, response: httpx.Response) -> T:
        """The answer in the response. Raises Refused, and Unreachable where the answer is not Warpfold's."""
        if not (response.is_success or response.status_code in self.expected):
            raise _refusal(response)
        try:
            return self.read(response)
        except (ValueError, KeyError, TypeError) as error:
            kind = response.headers.get("Content-Type", "something")
            raise Unreachable(
                f"{response.url} answers with {kind} that this client cannot read: is it the address of Warpfold, and "
                "is the client as new as the service?"
            ) from error


Steps = Generator[Call[Any], Any, T]
"""A conversation whose outcome is a T."""


def send(call: Call[T]) -> Steps[T]:
    """The conversation of a single request."""
    answer: T = yield call
    return answer


def mapped(made: Callable[[T], U], steps: Steps[T]) -> Steps[U]:
    """The conversation, of whose outcome another is `made`."""
    return made((yield from steps))


def pages(path: str, model: type[M], wanted: Parameters, *, limit: int, page: int) -> Steps[list[M]]:
    """Up to `limit` items of a list, newest first, from as many pages of at most `page` as it takes."""

    def read(answer: httpx.Response) -> tuple[list[M], str | None]:
        body = answer.json()
        return [model.model_validate(item) for item in body["items"]], body["next_cursor"]

    listed: list[M] = []
    cursor: str | None = None
    while len(listed) < limit:
        part = {"limit": min(page, limit - len(listed)), "cursor": cursor}
        items, cursor = yield Call("GET", path, read, {**wanted, **part})
        listed += items
        if cursor is None:
            break
    return listed


# What is live asks the client that gave it.


@overload
def awaited(
    method: "Callable[Concatenate[Any, P], LiveJob]",
) -> "Callable[Concatenate[Any, P], Coroutine[Any, Any, AsyncLiveJob]]": ...


@overload
def awaited(
    method: "Callable[Concatenate[Any, P], list[LiveJob]]",
) -> "Callable[Concatenate[Any, P], Coroutine[Any, Any, list[AsyncLiveJob]]]": ...


@overload
def awaited(
    method: "Callable[Concatenate[Any, P], LiveBatch]",
) -> "Callable[Concatenate[Any, P], Coroutine[Any, Any, AsyncLiveBatch]]": ...


@overload
def awaited(
    method: "Callable[Concatenate[Any, P], list[LiveBatch]]",
) -> "Callable[Concatenate[Any, P], Coroutine[Any, Any, list[AsyncLiveBatch]]]": ...


@overload
def awaited(method: Callable[Concatenate[Any, P], T]) -> Callable[Concatenate[Any, P], Coroutine[Any, Any, T]]: ...


def awaited(method: Callable[..., Any]) -> Callable[..., Any]:
    """The method whose answer is awaited, with the same arguments and errors."""

    @wraps(method)
    async def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        return await method(self, *args, **kwargs)

    return call


async def _pieces(content: Content) -> AsyncIterator[bytes]:
    for piece in content.pieces():
        yield bytes(piece)


def _refusal(response: httpx.Response) -> Refused:
    # Redirects are not followed: the token is for this address, and a POST would become a GET.
    if response.has_redirect_location:
        elsewhere = f"it redirects to {response.headers['Location']}; use that address"
        return Refused(response.status_code, response.reason_phrase, elsewhere)
    try:
        problem = response.json()
        errors = [FieldError(str(error["field"]), str(error["message"])) for error in problem.get("errors", ())]
        return Refused(response.status_code, str(problem["title"]), str(problem.get("detail", "")), errors)
    except (ValueError, KeyError, TypeError, AttributeError):
        return Refused(response.status_code, response.reason_phrase, response.text[:200])
