"""Sends the bodies of large uploads over plain HTTP from one buffer, straight into a socket.

httpx and h11 pass a body on in pieces that they copy, which is a quarter of the time that the client spends on an
upload. The standard library's HTTP client writes a buffer to the socket as it is. All other requests, TLS and proxies
stay with httpx.
"""

import http.client
import socket
import threading
from collections.abc import Mapping
from contextlib import suppress
from urllib.request import getproxies

from warpfold.client.exchange import CONTENT, PAST_PROXIES, Content
from warpfold.client.http import httpx

_LEAST = 8 << 20
"""Bytes from which a body is worth a connection of its own."""


def transports(url: str) -> Mapping[str, httpx.BaseTransport | None]:
    """The transports that `httpx.Client` mounts for the service at `url`."""
    mount = _mount(url)
    return dict(PAST_PROXIES) if mount is None else {**PAST_PROXIES, mount: UploadTransport()}


def async_transports(url: str) -> Mapping[str, httpx.AsyncBaseTransport | None]:
    """The transports that `httpx.AsyncClient` mounts for the service at `url`."""
    mount = _mount(url)
    return dict(PAST_PROXIES) if mount is None else {**PAST_PROXIES, mount: AsyncUploadTransport()}


def _mount(url: str) -> str | None:
    """The pattern of the service's addresses; None where TLS or a proxy may be in between."""
    target = httpx.URL(url)
    direct = f"all://{target.netloc.decode().removesuffix(f':{target.port}')}" in PAST_PROXIES or not getproxies()
    return f"http://{target.netloc.decode()}" if target.scheme == "http" and direct else None


class UploadTransport(httpx.BaseTransport):
    """Sends large contents by connections of their own, and all other requests as httpx does."""

    def __init__(self) -> None:
        self._others = httpx.HTTPTransport(verify=False)  # there are no certificates in plain HTTP to load

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        content = _large_content(request)
        return self._others.handle_request(request) if content is None else _Sending(request, content).run()

    def close(self) -> None:
        self._others.close()


class AsyncUploadTransport(httpx.AsyncBaseTransport):
    """The transport for asyncio, in which a thread sends each large content."""

    def __init__(self) -> None:
        self._others = httpx.AsyncHTTPTransport(verify=False)  # as above

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        import asyncio  # which the client that waits does not need

        content = _large_content(request)
        if content is None:
            return await self._others.handle_async_request(request)
        sending, loop = _Sending(request, content), asyncio.get_running_loop()
        answered: asyncio.Future[httpx.Response] = loop.create_future()

        def settle(response: httpx.Response | None, error: BaseException | None) -> None:
            if answered.done():
                return
            if response is not None:
                answered.set_result(response)
            elif error is not None:
                answered.set_exception(error)

        def run() -> None:
            response: httpx.Response | None = None
            error: BaseException | None = None
            try:
                response = sending.run()
            except BaseException as raised:
                error = raised
            with suppress(RuntimeError):  # the loop was closed meanwhile
                loop.call_soon_threadsafe(settle, response, error)

        # The loop's own threads are not used, because they are few, and an upload may take hours.
        threading.Thread(target=run, name="upload", daemon=True).start()
        try:
            return await answered
        except asyncio.CancelledError:
            sending.stop()
            raise

    async def aclose(self) -> None:
        await self._others.aclose()


def _large_content(request: httpx.Request) -> Content | None:
    content: Content | None = request.extensions.get(CONTENT)
    return content if content is not None and content.length >= _LEAST else None


class _Sending:
    """One request with a large body, on a connection of its own. Any thread may stop it."""

    def __init__(self, request: httpx.Request, content: Content) -> None:
        self._request = request
        self._content = content
        self._timeouts: Mapping[str, float | None] = request.extensions["timeout"]
        url = request.url
        self._wire = http.client.HTTPConnection(url.host, url.port, timeout=self._timeouts["connect"])
        self._stopped = False

    def run(self) -> httpx.Response:
        """Send the request and read its whole answer. Raises httpx.TransportError."""
        try:
            self._connect()
            self._send()
            return self._answer()
        finally:
            self._wire.close()

    def stop(self) -> None:
        """Let `run` end with an error."""
        self._stopped = True
        if (wire := self._wire.sock) is not None:
            with suppress(OSError):
                wire.shutdown(socket.SHUT_RDWR)

    def _connect(self) -> None:
        try:
            self._wire.connect()
        except TimeoutError as error:
            raise httpx.ConnectTimeout(str(error)) from error
        except OSError as error:
            raise httpx.ConnectError(str(error)) from error
        if self._stopped:
            raise httpx.WriteError("the upload was given up")
        self._wire.sock.settimeout(self._timeouts["write"])

    def _send(self) -> None:
        request = self._request
        self._wire.putrequest(
            request.method, request.url.raw_path.decode("ascii"), skip_host=True, skip_accept_encoding=True
        )
        for name, value in request.headers.raw:
            self._wire.putheader(name, value)
        pieces = self._content.pieces()
        try:
            self._wire.endheaders()
            while (piece := next(pieces, None)) is not None:
                self._wire.sock.sendall(piece)
        except TimeoutError as error:
            raise httpx.WriteTimeout(str(error)) from error
        except ConnectionError:
            pass  # the service may have answered before it hung up

    def _answer(self) -> httpx.Response:
        self._wire.sock.settimeout(self._timeouts["read"])
        try:
            answer = self._wire.getresponse()
            body = answer.read()
        except TimeoutError as error:
            raise httpx.ReadTimeout(str(error)) from error
        except http.client.HTTPException as error:
            raise httpx.RemoteProtocolError(str(error)) from error
        except OSError as error:
            raise httpx.ReadError(str(error)) from error
        return httpx.Response(answer.status, headers=answer.getheaders(), content=body)
