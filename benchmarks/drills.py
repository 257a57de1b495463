"""Measures what floods of one user or address cost other users: `python -m benchmarks.drills`.

Starts one api on servers of its own, floods it over loopback for a few seconds each time, and asks as another user
meanwhile: for a job, or beside bodies that are slow to read by a body of 100 KB. Prints a row a flood: the other user's
p95 beside the quiet one just before, and the memory of the api beside the quiet one.
"""

import argparse
import asyncio
import json
import os
import sys
import time
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import repeat
from pathlib import Path
from urllib.parse import urlencode

import httpx
import psutil

from benchmarks.chaos.blows import Target
from benchmarks.figures import Figure, measured_service, report
from benchmarks.http_load import Connection, Exchange, percentile, request
from warpfold.app.auth.access_tokens import create_token
from warpfold.app.db import BlockingDatabase

_SECONDS = 5.0
_P95_AT_MOST = 5.0
_MEMORY_AT_MOST = 2.0


@dataclass(frozen=True, slots=True)
class Stage:
    """The api under attack, the token of the attacker, and jobs that can be asked for: one of a page of jobs, one of
    10,000 groups, and one of 400,000 values, which are stored."""

    host: str
    port: int
    token: str
    job: str = ""
    groups: str = ""
    stored: str = ""


Flood = Callable[[Stage, float], Coroutine[None, None, None]]


async def _repeated(stage: Stage, message: bytes, connections: int, until: float) -> None:
    """Send `message` again and again over each of `connections`, which are opened again when the api closes them."""

    async def client() -> None:
        while time.monotonic() < until:
            connection = Connection(stage.host, stage.port)
            try:
                await connection.open()
                while time.monotonic() < until:
                    await connection.send(message)
            except (OSError, asyncio.IncompleteReadError):
                await asyncio.sleep(0.01)
            else:
                connection.close()

    tasks = [asyncio.create_task(client()) for _ in range(connections)]
    await asyncio.wait(tasks, timeout=max(0.0, until - time.monotonic()) + 1)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def polls(stage: Stage, until: float) -> None:
    """64 connections ask for a job"""
    await _repeated(stage, request("GET", f"/v1/jobs/{stage.job}", stage.token), 64, until)


async def pages(stage: Stage, until: float) -> None:
    """16 connections ask for pages of 200 jobs"""
    await _repeated(stage, request("GET", "/v1/jobs?limit=200", stage.token), 16, until)


async def large_bodies(stage: Stage, until: float) -> None:
    """16 connections post refused bodies of 1.1 MB"""
    values = [0.123456789] * 90_000
    spec = {"kind": "reduce", "op": "sum", "source": {"type": "values", "values": [*values, "x"]}}
    await _repeated(stage, request("POST", "/v1/jobs", stage.token, json.dumps(spec).encode()), 16, until)


async def large_forms(stage: Stage, until: float) -> None:
    """16 connections post refused forms of 1 MB"""
    address = f"http://{stage.host}:{stage.port}"
    async with httpx.AsyncClient() as client:
        signed_in = await client.post(f"{address}/sign-in", data={"token": stage.token}, headers={"Origin": address})
    session = signed_in.headers["Set-Cookie"].partition(";")[0]
    typed = {"kind": "reduce", "op": "sum", "source.type": "values", "source.values": "0.12345678 " * 90_000 + "x"}
    await _repeated(stage, _form("/jobs/new", stage, typed, Cookie=session), 16, until)


def _form(path: str, stage: Stage, typed: dict[str, str], **headers: str) -> bytes:
    """A request with a form, as the dashboard's own page sends it."""
    body = urlencode(typed).encode()
    lines = [f"POST {path} HTTP/1.1", f"Host: {stage.host}:{stage.port}", f"Origin: http://{stage.host}:{stage.port}"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    lines += ["Content-Type: application/x-www-form-urlencoded", f"Content-Length: {len(body)}"]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


async def guesses(stage: Stage, until: float) -> None:
    """64 connections guess tokens"""
    await _repeated(stage, request("GET", "/v1/jobs", "wf_guessed"), 64, until)


async def heads(stage: Stage, until: float) -> None:
    """4 connections send headers without end"""
    await _repeated(stage, b"GET /healthz HTTP/1.1\r\nHost: a\r\n" + b"a: b\r\n" * 200_000, 4, until)


async def half_heads(stage: Stage, until: float) -> None:
    """1,100 connections send half a head"""
    writers = []
    for _ in range(1100):
        _, writer = await asyncio.open_connection(stage.host, stage.port)
        writer.write(b"GET /healthz HTTP/1.1\r\nHost: a\r\n")
        writers.append(writer)
    await asyncio.sleep(max(0.0, until - time.monotonic()))
    for writer in writers:
        writer.close()


async def tables(stage: Stage, until: float) -> None:
    """16 connections ask for 10,000 groups as CSV"""
    path = f"/v1/jobs/{stage.groups}/result?format=csv"
    message = request("GET", path, stage.token, Connection="close")

    async def client() -> None:
        while time.monotonic() < until:
            reader, writer = await asyncio.open_connection(stage.host, stage.port)
            writer.write(message)
            while await reader.read(1 << 16):
                pass
            writer.close()

    await asyncio.gather(*(client() for _ in range(16)), return_exceptions=True)


async def unread(stage: Stage, until: float) -> None:
    """250 downloads of 400,000 values as CSV that nobody reads"""
    message = request("GET", f"/v1/jobs/{stage.stored}/artefact?format=csv", stage.token)
    writers = []
    for _ in range(250):
        _, writer = await asyncio.open_connection(stage.host, stage.port, limit=1024)
        writer.write(message)
        writers.append(writer)
    await asyncio.sleep(max(0.0, until - time.monotonic()))
    for writer in writers:
        writer.close()


async def documents(stage: Stage, until: float) -> None:
    """16 connections ask for /openapi.json"""
    await _repeated(stage, request("GET", "/openapi.json", stage.token), 16, until)


async def scrapes(stage: Stage, until: float) -> None:
    """16 connections ask for /metrics"""
    await _repeated(stage, request("GET", "/metrics", stage.token), 16, until)


async def slow_bodies(stage: Stage, until: float) -> None:
    """4 connections post bodies of 4 MiB of 1e-400"""
    await _repeated(stage, _tiny_numbers(stage, 590_000), 4, until)


async def half_slow_bodies(stage: Stage, until: float) -> None:
    """4 connections post bodies of 500 KB of 1e-400"""
    await _repeated(stage, _tiny_numbers(stage, 70_000), 4, until)


def _tiny_numbers(stage: Stage, count: int) -> bytes:
    head = b'{"kind": "reduce", "source": {"type": "values", "dtype": "int64", "values": ['
    return request("POST", "/v1/jobs", stage.token, head + b"1e-400," * count + b"1]}}")


FLOODS: Sequence[Flood] = (
    *(polls, pages, large_bodies, large_forms, guesses, heads, half_heads),
    *(tables, unread, documents, scrapes, slow_bodies, half_slow_bodies),
)
_BESIDE_BODIES = (slow_bodies, half_slow_bodies)


@contextmanager
def _attacking(flood: Flood, stage: Stage, until: float) -> Iterator[None]:
    """Run `flood` in a process of its own, so that this process measures the api and not itself."""
    pid = os.fork()
    if pid == 0:
        try:
            asyncio.run(flood(stage, until))
        finally:
            os._exit(0)
    try:
        yield
    finally:
        os.waitpid(pid, 0)


async def _asked(stage: Stage, message: bytes, until: float) -> list[Exchange]:
    """Measure the latency of another user, who sends `message` twenty times a second over one connection."""
    connection = Connection(stage.host, stage.port)
    await connection.open()
    exchanges = []
    while time.monotonic() < until:
        exchanges.append(await connection.send(message))
        await asyncio.sleep(0.05)
    connection.close()
    return exchanges


def _under(
    flood: Flood | None, stage: Stage, message: bytes, api: psutil.Process, seconds: float
) -> tuple[float, float]:
    """The p95 of the other user, who sends `message`, in milliseconds, and the largest memory of the api in MiB."""
    peak = api.memory_info().rss

    async def watched(until: float) -> list[Exchange]:
        nonlocal peak
        asking = asyncio.create_task(_asked(stage, message, until))
        while not asking.done():
            peak = max(peak, api.memory_info().rss)
            await asyncio.sleep(0.1)
        return await asking

    if flood is None:
        exchanges = asyncio.run(watched(time.monotonic() + seconds))
    else:
        with _attacking(flood, stage, time.monotonic() + seconds + 1):
            time.sleep(0.5)
            exchanges = asyncio.run(watched(time.monotonic() + seconds))
    assert {exchange.status for exchange in exchanges} <= {200, 202}, {exchange.status for exchange in exchanges}
    return percentile(exchanges, 95), peak / 2**20


def measure(stage: Stage, token: str, api: psutil.Process, seconds: float, floods: Sequence[Flood]) -> list[Figure]:
    """Measure all figures, in order."""
    asked = {
        "asks for a job": request("GET", f"/v1/jobs/{stage.job}", token),
        "posts 100 KB": request("POST", "/v1/jobs", token, json.dumps(_BODY).encode()),
    }
    figures = []
    for flood in floods:
        what = "posts 100 KB" if flood in _BESIDE_BODIES else "asks for a job"
        _under(None, stage, asked[what], api, 1.0)
        quiet_ms, quiet_mib = _under(None, stage, asked[what], api, seconds)
        ms, mib = _under(flood, stage, asked[what], api, seconds)
        met = ms <= _P95_AT_MOST * quiet_ms and mib <= _MEMORY_AT_MOST * quiet_mib
        measured = f"{ms:.1f} ms ({ms / quiet_ms:.1f}×), {mib:.0f} MiB ({mib / quiet_mib:.2f}×)"
        figures.append(Figure(f"{flood.__doc__}; another user {what}", measured, "≤ 5×, ≤ 2×", met))
        time.sleep(1.0)
    return figures


def main() -> int:
    """Measure and print; 0 if every figure is met."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, help="write the figures with their provenance as JSON")
    parser.add_argument("--seconds", type=float, default=_SECONDS, help="of each flood (%(default)s)")
    names = [flood.__name__ for flood in FLOODS]
    parser.add_argument("floods", nargs="*", metavar="FLOOD", help=f"{', '.join(names)}; by default all")
    options = parser.parse_args()
    chosen = [flood for flood in FLOODS if flood.__name__ in (options.floods or names)]
    with measured_service() as (service, data_dir):
        from warpfold.worker.embedded import EmbeddedPostgres

        database = BlockingDatabase(EmbeddedPostgres(data_dir / "postgres").url, application="drills")
        attacker, other = (database.run(create_token, name) for name in ("attacker", "other"))
        database.close()
        host, port = service.url.removeprefix("http://").split(":")
        stage = _prepared(Stage(host, int(port), attacker))
        (api,) = Target(data_dir).processes()["api"]
        figures = measure(stage, other, api, options.seconds, chosen)
    return report("Floods of one user or address", figures, options.out)


_BODY = {"kind": "reduce", "op": "sum", "source": {"type": "values", "values": [0.125] * 15_000, "dtype": "float64"}}
_SMALL = {"kind": "reduce", "op": "sum", "source": {"type": "values", "values": [1.0, 2.0]}}
_GROUPS = {
    "kind": "groupby",
    "by": [{"name": "group", "source": {"type": "values", "values": [f"group {n}" for n in range(10_000)]}}],
    "aggregations": [{"op": "sum", "name": "total", "source": {"type": "values", "values": [0.1] * 10_000}}],
}
_STORED = {
    "kind": "reduce",
    "op": "sum",
    "source": {"type": "generate", "distribution": "normal", "n": 800_000},
    "segments": {"length": 2},
}


def _prepared(stage: Stage) -> Stage:
    """Submit enough jobs to fill a page, and wait for those that can be asked for."""

    async def submitted() -> Stage:
        connection = Connection(stage.host, stage.port)
        await connection.open()

        async def last(spec: object, count: int = 1) -> str:
            job = ""
            for message in repeat(request("POST", "/v1/jobs", stage.token, json.dumps(spec).encode()), count):
                job = json.loads((await connection.send(message)).body)["id"]
            while True:
                answer = await connection.send(request("GET", f"/v1/jobs/{job}", stage.token, Prefer="wait=30"))
                status = json.loads(answer.body)["status"]
                assert status in ("queued", "running", "succeeded"), answer.body
                if status == "succeeded":
                    return job

        prepared = replace(stage, job=await last(_SMALL, 200), groups=await last(_GROUPS), stored=await last(_STORED))
        # The document is made once, and the process apart starts once.
        await connection.send(request("GET", "/openapi.json", stage.token))
        async with httpx.AsyncClient(base_url=f"http://{stage.host}:{stage.port}", timeout=60) as client:
            await client.get(
                f"/v1/jobs/{prepared.groups}/result?format=csv", headers={"Authorization": f"Bearer {stage.token}"}
            )
        connection.close()
        return prepared

    return asyncio.run(submitted())


if __name__ == "__main__":
    sys.exit(main())
