"""Objects of places: opened by a first range, which tells their size and their ETag, and read by further ranges, which
must be of the same object."""

import random
import re
import weakref
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from threading import Event
from typing import Any, NoReturn
from urllib.parse import urljoin

import numpy as np
from numpy.typing import NDArray

from warpfold.kernels.errors import InvalidInput, KernelError, Unavailable
from warpfold.kernels.places.place import WEB, ObjectMetadata, Place, Places, Target
from warpfold.kernels.places.stores import EXPIRED, Signer
from warpfold.kernels.places.transport import FAULTS, Connections, Response, Timeouts

REQUEST_BYTES = 1 << 23
"""The longest range of one request."""

IN_FLIGHT = 8
"""How many requests of one job are under way at a time."""

FIRST_BYTES = 1 << 18
"""The range that opens an object, which is all of a small one."""

IN_HAND = IN_FLIGHT + IN_FLIGHT // 2
"""How many ranges of one object are under way, or read and in use or not yet asked for: while the first of them is
late, the connections of the others have something left to do."""

_MOST_REDIRECTS = 5
_PROGRESS = 1 << 16
_PIECE = REQUEST_BYTES
"""The bytes that are asked of a connection at a time: a call waits for the interpreter's lock when it has ended."""
_AGAIN = frozenset({408, 425, 429, 500, 502, 503, 504})
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_RANGE = re.compile(r"bytes ([0-9]{1,19})-([0-9]{1,19})/([0-9]{1,19})")
_CODE = re.compile(rb"<Code>([A-Za-z]{1,64})</Code>")
_CHANGED = "changed while it was read"


class NotThere(InvalidInput):
    """There is no such object."""


class _TryAgain(Exception):
    """A request failed in a way that passes. `after_s` is how long the server asks to wait."""

    def __init__(self, why: str, after_s: float = 0.0) -> None:
        super().__init__(why)
        self.after_s = after_s


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How often a request is tried again that brings nothing, and how many seconds are waited before: `first_s`, then
    twice as long each time, at most `most_s`."""

    retries: int = 6
    first_s: float = 0.2
    most_s: float = 5.0
    timeouts: Timeouts = field(default_factory=Timeouts)

    def pause_s(self, number: int, asked_s: float) -> float:
        wait = min(self.most_s, self.first_s * 2.0 ** (number - 1))
        return max(wait * random.uniform(0.8, 1.2), min(asked_s, 10 * self.most_s))  # noqa: S311 (no secret)


class Session:
    """The connections, threads and signed requests that all objects of one source share. A session ends when it is
    closed or not used any more; reads that wait then are given up."""

    def __init__(self, places: Places, retry_policy: RetryPolicy | None = None) -> None:
        self.places = places
        self.retry_policy = retry_policy or RetryPolicy()
        self.connections = Connections(self.retry_policy.timeouts)
        self._signers: dict[str, Signer] = {}
        self._threads = ThreadPoolExecutor(IN_FLIGHT, "places")
        self._memory: deque[NDArray[np.uint8]] = deque()
        self._closed = Event()
        weakref.finalize(self, _close, self._closed, self._threads, self.connections)

    def signer(self, place: Place) -> Signer:
        return self._signers.setdefault(place.url, Signer(place))

    def start(self, task: Any, *arguments: Any) -> Future[Any]:
        """Have a thread do it, behind what was started before."""
        return self._threads.submit(task, *arguments)

    def pause(self, seconds: float) -> None:
        """Raises Unavailable where the session is closed meanwhile."""
        if self._closed.wait(seconds) if seconds else self._closed.is_set():
            raise Unavailable("the reading was stopped")

    def lent(self, nbytes: int) -> NDArray[np.uint8]:
        """An array of at most REQUEST_BYTES bytes, of any content. The memory of a long one is lent again when neither
        the array nor a view of it is in use: the system clears new memory first, which takes time."""
        if 2 * nbytes < REQUEST_BYTES:
            return np.empty(nbytes, np.uint8)
        try:
            memory = self._memory.pop()
        except IndexError:
            memory = np.empty(REQUEST_BYTES, np.uint8)  # in large pages, where the system has them
        array = np.frombuffer(memory.data, np.uint8)  # of which views keep hold; views of `memory` would not
        weakref.finalize(array, self._memory.append, memory).atexit = False
        return array[:nbytes]

    def close(self) -> None:
        _close(self._closed, self._threads, self.connections)


def _close(closed: Event, threads: ThreadPoolExecutor, connections: Connections) -> None:
    closed.set()
    threads.shutdown(wait=False, cancel_futures=True)
    connections.close()


class RemoteObject:
    """An object as it was when it was opened: `size` in bytes, `etag` and `modified` as its server writes them, None
    where it says neither. Several threads may read it at once.

    Opening raises NotThere, InvalidInput and Unavailable.
    """

    def __init__(self, session: Session, target: Target, first_bytes: int = FIRST_BYTES) -> None:
        self._session = session
        self._target = target
        self._location: tuple[Target, str] | None = None
        self.size = -1
        self.etag: str | None = None
        self.modified: str | None = None
        self.fetched = 0
        self.fault: KernelError | None = None
        self.head = bytes(self._opened(first_bytes))

    @property
    def url(self) -> str:
        return self._target.url

    @property
    def session(self) -> Session:
        return self._session

    @property
    def stamp(self) -> tuple[str, int, str | None, str | None]:
        """The mark that tells this object from another of its name."""
        return self.url, self.size, self.etag, self.modified

    def metadata(self) -> ObjectMetadata:
        """The record of it in a result."""
        return ObjectMetadata(self.url, self.size, self.etag, self.modified, self.fetched)

    def read_into(self, start: int, view: memoryview) -> None:
        """Fill `view` with the bytes from `start` on, which the object must have. Raises InvalidInput where it is
        another object now, and Unavailable where its server gives them after no number of tries."""
        known = self.head[start : start + len(view)]
        view[: len(known)] = known
        if len(known) < len(view):
            self._tried(start + len(known), view[len(known) :])

    def read(self, start: int, stop: int) -> bytearray:
        """Bytes start … stop − 1."""
        out = bytearray(stop - start)
        self.read_into(start, memoryview(out))
        return out

    def array(self, start: int, stop: int) -> NDArray[np.uint8]:
        """Bytes start … stop − 1, of which there are at most REQUEST_BYTES."""
        out = self._session.lent(stop - start)
        self.read_into(start, out.data)
        return out

    def in_order(self, ranges: Iterator[tuple[int, int]]) -> Iterator[NDArray[np.uint8]]:
        """The bytes of each range, of at most REQUEST_BYTES, in order; the next ranges are asked for meanwhile."""
        under_way: deque[Future[NDArray[np.uint8]]] = deque()
        try:
            for start, stop in ranges:
                under_way.append(self._session.start(self.array, start, stop))
                if len(under_way) == IN_HAND:
                    yield under_way.popleft().result()
            while under_way:
                yield under_way.popleft().result()
        finally:
            for waiting in under_way:
                waiting.cancel()

    def _opened(self, first_bytes: int) -> bytearray:
        """The first bytes; those of a shorter object are all."""
        out = bytearray(first_bytes)
        filled = self._tried(0, memoryview(out), first=True)
        return out[:filled]

    def _tried(self, start: int, view: memoryview, *, first: bool = False) -> int:
        filled, failed = 0, 0
        while filled < len(view):
            if self.fault is not None:
                raise self.fault  # other threads wait for nothing more of it
            try:
                for count in self._ranged(start + filled, view[filled:]):
                    filled += count
                    self.fetched += count
                    failed = 0 if count >= _PROGRESS else failed
                if first and start + filled >= self.size:
                    break
            except (_TryAgain, *FAULTS) as fault:
                failed += 1
                why = str(fault) if isinstance(fault, _TryAgain) else _words(fault)
                if failed > self._session.retry_policy.retries:
                    self._fail(Unavailable(f"its server did not send it, after {failed} tries: {why}"))
                after_s = fault.after_s if isinstance(fault, _TryAgain) else 0.0
                self._session.pause(self._session.retry_policy.pause_s(failed, after_s))
                first = first and self.size < 0  # the rest of the first range is read as any other
                if self.size >= 0:
                    view = view[: max(0, self.size - start)]
            except KernelError as error:
                self._fail(error)
        return filled

    def _fail(self, error: KernelError) -> NoReturn:
        """Raise the error, and keep it, because a library that decodes may replace it by an error of its own."""
        self.fault = self.fault or error
        raise error

    def _ranged(self, start: int, view: memoryview) -> Iterator[int]:
        """Read the body of one answer into `view`; gives how many bytes came each time."""
        with self._asked(start, start + len(view)) as answer:
            length = self._judged(answer, start, len(view))
            filled = 0
            while filled < length:
                self._session.pause(0)
                count = answer.read_into(view[filled : min(length, filled + _PIECE)])
                if count == 0:
                    raise _TryAgain("the connection was cut")
                filled += count
                yield count
            answer.read_into(memoryview(bytearray(1)))  # to its end, so that the connection serves again

    def _asked(self, start: int, stop: int) -> Response:
        headers = {"Range": f"bytes={start}-{stop - 1}", "Accept-Encoding": "identity", **self._conditions()}
        target, url, theirs = self._request()
        for _ in range(_MOST_REDIRECTS + 1):
            answer = self._session.connections.get(url, {**headers, **theirs}, target.place)
            if answer.status not in _REDIRECTS:
                return answer
            with answer:
                location = answer.header("Location")
            if target.place.scheme not in WEB or not location:
                raise InvalidInput("its server redirects; the region or the endpoint of the configuration is wrong")
            target, url = self._session.places.redirected(urljoin(url, location))
            theirs = self._session.signer(target.place).request(target)[1]
            self._location = target, url
        raise InvalidInput(f"its server redirects more than {_MOST_REDIRECTS} times")

    def _request(self) -> tuple[Target, str, dict[str, str]]:
        if self._location is not None:
            target, url = self._location
            return target, url, self._session.signer(target.place).request(target)[1]
        url, headers = self._session.signer(self._target.place).request(self._target)
        return self._target, url, headers

    def _conditions(self) -> dict[str, str]:
        if self.etag is not None and not self.etag.startswith("W/"):  # a weak one never matches
            return {"If-Match": self.etag}
        return {} if self.modified is None else {"If-Unmodified-Since": self.modified}

    def _judged(self, answer: Response, start: int, asked: int) -> int:
        """How many bytes of the object follow. Raises where it is another, or cannot be read."""
        status = answer.status
        if self.size < 0 and (status == 416 or (status == 200 and answer.header("Content-Length") == "0")):
            self._know(0, answer)  # no range of no bytes can be given
            return 0
        if status != 206:
            self._refused(answer)
        match = _RANGE.fullmatch(answer.header("Content-Range") or "")
        if match is None:
            raise InvalidInput("cannot be read: its server does not say which bytes it gives")
        begin, end, size = int(match[1]), int(match[2]) + 1, int(match[3])
        if self.size < 0:
            self._know(size, answer)
        if size != self.size or self._differs("ETag", self.etag, answer):
            raise InvalidInput(_CHANGED)
        if self.etag is None and self._differs("Last-Modified", self.modified, answer):
            raise InvalidInput(_CHANGED)
        expected = min(start + asked, size) - start
        declared = answer.header("Content-Length")
        if begin != start or end - begin != expected or declared not in (None, str(expected)):
            raise _TryAgain("it gave other bytes than those asked for")
        return expected

    def _know(self, size: int, answer: Response) -> None:
        self.size, self.etag, self.modified = size, answer.header("ETag"), answer.header("Last-Modified")

    @staticmethod
    def _differs(name: str, known: str | None, answer: Response) -> bool:
        now = answer.header(name)
        return known is not None and now is not None and now != known

    def _refused(self, answer: Response) -> NoReturn:
        status = answer.status
        code = _CODE.search(answer.first(2048))
        named = f"{status} {code[1].decode()}" if code else str(status)
        if status == 200:
            raise InvalidInput("cannot be read: its server gives no ranges of bytes")
        if status in _AGAIN:
            asked = answer.header("Retry-After") or ""
            raise _TryAgain(f"it answered {named}", float(asked) if asked.isdecimal() else 0.0)
        if self._location is not None and self.size >= 0 and status in (401, 403, 404, 410):
            self._location = None  # where it was redirected to has expired
            raise _TryAgain(f"it answered {named}")
        if status in (412, 416) or (self.size >= 0 and status in (404, 410)):
            raise InvalidInput(_CHANGED)
        if status in (404, 410):
            raise NotThere("is not there")
        if code and code[1].decode() in EXPIRED:
            raise Unavailable(f"this server's credentials for it have expired ({named})")
        if status in (401, 403):
            raise InvalidInput(
                f"may not be read with the credentials of this server's configuration, or is not there ({named})"
            )
        raise InvalidInput(f"cannot be read: its server answered {named}")


def _words(fault: BaseException) -> str:
    """The message of an error, without the text that a library quotes."""
    if isinstance(fault, TimeoutError):
        return "it did not answer in time"
    if isinstance(fault, OSError) and fault.strerror:
        return fault.strerror.lower()
    return f"the connection failed ({type(fault).__name__})"
