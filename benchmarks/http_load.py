"""Generates HTTP/1.1 load over keep-alive connections, measures latencies in seconds, and takes little CPU.

The machine that is measured is the machine that measures, so a general client would cost more than the server.
"""

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Exchange:
    """The answer to a request."""

    status: int
    body: bytes
    seconds: float
    etag: str | None = None


@dataclass(frozen=True, slots=True)
class Load:
    """All answers of a run that took `seconds`."""

    exchanges: Sequence[Exchange]
    seconds: float

    @property
    def per_second(self) -> float:
        return len(self.exchanges) / self.seconds


def percentile(exchanges: Sequence[Exchange], percent: float) -> float:
    """The latency in milliseconds below which `percent` of the answers lie (nearest rank)."""
    ordered = sorted(exchange.seconds for exchange in exchanges)
    rank = max(0, min(len(ordered) - 1, round(percent / 100 * len(ordered) + 0.5) - 1))
    return ordered[rank] * 1e3


class Connection:
    """A keep-alive connection."""

    def __init__(self, host: str, port: int) -> None:
        self._address = (host, port)

    async def open(self) -> None:
        self._reader, self._writer = await asyncio.open_connection(*self._address)

    async def send(self, request: bytes) -> Exchange:
        started = time.perf_counter()
        self._writer.write(request)
        head = await self._reader.readuntil(b"\r\n\r\n")
        status = int(head[9:12])
        length, etag = 0, None
        for line in head.split(b"\r\n"):
            if line.lower().startswith(b"content-length:"):
                length = int(line[15:])
            elif line.lower().startswith(b"etag:"):
                etag = line[5:].strip().decode()
        body = await self._reader.readexactly(length) if length and status != 304 else b""
        return Exchange(status, body, time.perf_counter() - started, etag)

    def close(self) -> None:
        self._writer.close()


def request(method: str, path: str, token: str, body: bytes = b"", **headers: str) -> bytes:
    """The bytes of a request. Names of headers are keyword arguments, with underscores for hyphens."""
    lines = [f"{method} {path} HTTP/1.1", "Host: localhost", f"Authorization: Bearer {token}"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    if body:
        lines += ["Content-Type: application/json", f"Content-Length: {len(body)}"]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


async def drive(host: str, port: int, connections: int, make: Callable[[int], bytes | None]) -> Load:
    """Send make(0), make(1), … over `connections` connections at once, until `make` returns None."""
    count = 0
    exchanges: list[Exchange] = []

    async def work() -> None:
        nonlocal count
        connection = Connection(host, port)
        await connection.open()
        while (following := make(count)) is not None:
            count += 1
            exchanges.append(await connection.send(following))
        connection.close()

    started = time.perf_counter()
    await asyncio.gather(*(work() for _ in range(connections)))
    return Load(exchanges, time.perf_counter() - started)
