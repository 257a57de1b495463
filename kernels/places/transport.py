"""HTTP connections to checked addresses: a host's name is looked up once, and connected to by number, so that a name
that changes its address between the check and the connection gains nothing.

http.client reads a body straight into the buffer that it is for, and follows no redirect. Without TLS, the system waits
until a buffer is full: a call for each packet would have threads wait for the interpreter's lock.
"""

import http.client
import io
import socket
import ssl
import struct
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from threading import Lock
from typing import Any
from urllib.parse import urlsplit

from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.places.addresses import is_public
from warpfold.kernels.places.place import Place

FAULTS = (OSError, http.client.HTTPException)
"""The errors of a connection after which another try may go better."""

_MOST_IDLE = 16


@dataclass(frozen=True, slots=True)
class Timeouts:
    """Seconds to connect, and for each piece of an answer."""

    connect_s: float = 10.0
    read_s: float = 30.0


class Response:
    """The answer to a request, whose body is to be read. Its connection is used again only where all of it was read."""

    def __init__(self, connections: "Connections", key: "_Key", connection: http.client.HTTPConnection) -> None:
        self._connections = connections
        self._key = key
        self._connection = connection
        self._http = connection.getresponse()
        self.status = self._http.status

    def header(self, name: str) -> str | None:
        return self._http.headers.get(name)

    def read_into(self, view: memoryview) -> int:
        """Bytes of the body that are put at the beginning of `view`; 0 at its end. Raises FAULTS."""
        return self._http.readinto(view)

    def first(self, most: int) -> bytes:
        """The beginning of the body. Raises FAULTS."""
        return self._http.read(most)

    def __enter__(self) -> "Response":
        return self

    def __exit__(self, *_: object) -> None:
        if self._http.isclosed() and not self._http.will_close:
            self._connections.give_back(self._key, self._connection)
        else:
            self._http.close()
            self._connection.close()


class Connections:
    """Connections that are kept for the next request to the same server. Several threads may use it at once."""

    def __init__(self, timeouts: Timeouts | None = None) -> None:
        self._timeouts = timeouts or Timeouts()
        self._idle: dict[_Key, list[http.client.HTTPConnection]] = defaultdict(list)
        self._contexts: dict[str, ssl.SSLContext] = {}
        self._lock = Lock()
        self._closed = False

    def get(self, url: str, headers: Mapping[str, str], place: Place) -> Response:
        """The answer of the server of `url`, which is the `place`'s. Raises FAULTS, and InvalidInput where the server
        has a private address that it may not have."""
        parts = urlsplit(url)
        assert parts.hostname is not None, "the places' URLs have hosts"
        key = _Key(parts.scheme, parts.hostname, parts.port, place.private, place.ca_file)
        path = parts.path + (f"?{parts.query}" if parts.query else "")
        connection = self._taken(key)
        if connection is not None:
            try:
                return self._asked(key, connection, path, headers)
            except FAULTS:  # the server has closed it meanwhile
                connection.close()
        return self._asked(key, self._new(key), path, headers)

    def give_back(self, key: "_Key", connection: http.client.HTTPConnection) -> None:
        """Keep a connection whose answer was read to its end."""
        with self._lock:
            keep = not self._closed and len(self._idle[key]) < _MOST_IDLE
            if keep:
                self._idle[key].append(connection)
        if not keep:
            connection.close()

    def close(self) -> None:
        """Close the connections that are not in use, and keep no other."""
        with self._lock:
            self._closed = True
            idle = [connection for kept in self._idle.values() for connection in kept]
            self._idle.clear()
        for connection in idle:
            connection.close()

    def _asked(
        self, key: "_Key", connection: http.client.HTTPConnection, path: str, headers: Mapping[str, str]
    ) -> Response:
        try:
            connection.request("GET", path or "/", headers=dict(headers))
            return Response(self, key, connection)
        except BaseException:
            connection.close()
            raise

    def _taken(self, key: "_Key") -> http.client.HTTPConnection | None:
        with self._lock:
            idle = self._idle.get(key)
            return idle.pop() if idle else None

    def _new(self, key: "_Key") -> http.client.HTTPConnection:
        context = self._context(key.ca_file) if key.scheme == "https" else None
        return _Guarded(key, self._timeouts, context)

    def _context(self, ca_file: str) -> ssl.SSLContext:
        with self._lock:
            if ca_file not in self._contexts:
                context = ssl.create_default_context()
                if ca_file:
                    context.load_verify_locations(ca_file)
                self._contexts[ca_file] = context
            return self._contexts[ca_file]


@dataclass(frozen=True, slots=True)
class _Key:
    """The address and options that connections share which may stand for one another."""

    scheme: str
    host: str
    port: int | None
    private: bool
    ca_file: str


class _Guarded(http.client.HTTPConnection):
    """A connection to an address that was checked."""

    def __init__(self, key: _Key, timeouts: Timeouts, context: ssl.SSLContext | None) -> None:
        self.default_port = http.client.HTTP_PORT if context is None else http.client.HTTPS_PORT
        super().__init__(f"[{key.host}]" if ":" in key.host else key.host, key.port, timeout=timeouts.read_s)
        self._key = key
        self._connect_s = timeouts.connect_s
        self._context = context
        self._read_s = timeouts.read_s
        if context is None:
            self.response_class = _PlainResponse

    def connect(self) -> None:
        self.sock: Any = connected(self.host.strip("[]"), self.port, self._connect_s, private=self._key.private)
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if self._context is not None:
            self.sock = self._context.wrap_socket(self.sock, server_hostname=self._key.host)
            self.sock.settimeout(self._read_s)
            return
        self.sock.settimeout(None)  # the system alone waits until a buffer is full
        within = struct.pack("@ll", int(self._read_s), int(self._read_s % 1 * 1e6))
        for option in (socket.SO_RCVTIMEO, socket.SO_SNDTIMEO):
            self.sock.setsockopt(socket.SOL_SOCKET, option, within)


class _PlainResponse(http.client.HTTPResponse):
    """The answer of a connection without TLS."""

    def __init__(self, sock: socket.socket, *arguments: Any, **named: Any) -> None:
        super().__init__(sock, *arguments, **named)
        self.fp: Any = _Body(_WholeReads(sock, self.fp.detach()))

    def begin(self) -> None:
        super().begin()
        if isinstance(self.fp, _Body):  # it is None where there is no body
            self.fp.by_calls = not self.chunked  # http.client puts chunks together


class _Body(io.BufferedReader):
    """What a connection brings. With `by_calls` a read gives what one call of the system gave: bytes that came before
    the connection was cut are not lost."""

    by_calls = False

    def readinto(self, buffer: Any) -> int:
        return self.readinto1(buffer) if self.by_calls else super().readinto(buffer)


_LONG = 1 << 16


class _WholeReads(io.RawIOBase):
    """The bytes that a socket receives. Long reads are filled, unless the time limit of the socket ends before."""

    def __init__(self, sock: socket.socket, raw: io.RawIOBase) -> None:
        super().__init__()
        self._socket = sock
        self._raw = raw  # http.client counts on it to keep the socket open until the answer is closed

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        """Raises TimeoutError where nothing comes in time."""
        try:
            return self._socket.recv_into(buffer, 0, socket.MSG_WAITALL if len(buffer) >= _LONG else 0)
        except BlockingIOError:
            raise TimeoutError("nothing came in time") from None

    def close(self) -> None:
        self._raw.close()
        super().close()


def connected(host: str, port: int, within_s: float, *, private: bool) -> socket.socket:
    """A connection to one of the addresses of `host`, private ones only if `private`. Raises OSError, and InvalidInput
    where none of them may be called."""
    try:
        infos = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except UnicodeError:
        raise OSError("the name of its host is not valid") from None
    allowed = [info for info in infos if private or is_public(str(info[4][0]))]
    if infos and not allowed:
        raise InvalidInput("lies at a private address, which this server's configuration does not allow for it")
    fault: OSError = OSError("its name has no address")
    for family, kind, protocol, _, address in allowed:
        connection = socket.socket(family, kind, protocol)
        try:
            connection.settimeout(within_s)
            connection.connect(address)
            return connection
        except OSError as error:
            connection.close()
            fault = error
    raise fault
