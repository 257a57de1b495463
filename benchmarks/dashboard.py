"""Measures the dashboard's pages of 200,000 jobs, 100 polling windows, and sizes: `python -m benchmarks.dashboard`.

Starts `warpfold serve --slots cpu` in a temporary folder, measures, prints one table; `--out` writes it as JSON. The
browser's figures need a Chromium or Chrome on PATH and are left out without one.
"""

import argparse
import asyncio
import json
import random
import shutil
import statistics
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import psutil
import psycopg

from benchmarks.figures import Figure, measured_service, report
from benchmarks.http_load import Connection, Exchange, percentile, request
from benchmarks.service import body
from warpfold.client.demo.service import Service

WINDOWS = 100
EVERY_S = 2.0
JOBS_PER_S = 5.0
PAGES = ("/", "/jobs", "/jobs?status=succeeded", "/jobs/{job}", "/jobs/new", "/compare?job={job}", "/results", "/admin")


@dataclass(frozen=True, slots=True)
class Window:
    """The address of the dashboard, and the cookie of a user who is signed in."""

    host: str
    port: int
    token: str
    cookie: str

    @classmethod
    def of(cls, service: Service) -> "Window":
        answer = httpx.post(f"{service.url}/sign-in", data={"token": service.token}, headers={"Origin": service.url})
        host, port = service.url.removeprefix("http://").split(":")
        return cls(host, int(port), service.token, f"warpfold_session={answer.cookies['warpfold_session']}")

    def get(self, path: str, **headers: str) -> bytes:
        return request("GET", path, self.token, b"", Cookie=self.cookie, Accept_Encoding="gzip", **headers)

    def submit(self) -> bytes:
        return request("POST", "/v1/jobs", self.token, body(100), Prefer="wait=20")


async def polling(window: Window, seconds: float, windows: int) -> list[Exchange]:
    """Poll for the list from `windows` windows, each every two seconds and with the tag of its last answer."""
    end = time.perf_counter() + seconds
    answers: list[Exchange] = []

    async def poll() -> None:
        connection = Connection(window.host, window.port)
        await connection.open()
        await asyncio.sleep(random.random() * EVERY_S)
        tag = ""
        while time.perf_counter() < end:
            answer = await connection.send(window.get("/live/jobs", **({"If_None_Match": tag} if tag else {})))
            answers.append(answer)
            tag = answer.etag or tag
            await asyncio.sleep(EVERY_S - answer.seconds)
        connection.close()

    await asyncio.gather(*(poll() for _ in range(windows)))
    return answers


async def submitting(window: Window, seconds: float) -> list[Exchange]:
    """Submit five jobs a second, evenly, and hold each request until its result."""
    answers: list[Exchange] = []

    async def job(at: float) -> None:
        await asyncio.sleep(at)
        connection = Connection(window.host, window.port)
        await connection.open()
        answers.append(await connection.send(window.submit()))
        connection.close()

    await asyncio.gather(*(job(index / JOBS_PER_S) for index in range(int(seconds * JOBS_PER_S))))
    assert all(json.loads(answer.body)["status"] == "succeeded" for answer in answers), "a job did not succeed"
    return answers


def watched(window: Window, seconds: float) -> list[Figure]:
    """Measure the api's CPU, the polls' latency, and the jobs' latency with and without polling windows."""
    api = api_of(window.port)

    async def both(windows: int) -> tuple[list[Exchange], list[Exchange]]:
        return tuple(await asyncio.gather(polling(window, seconds, windows), submitting(window, seconds)))  # type: ignore[return-value]

    alone, crowded, busy, polls = [], [], 0.0, []
    for _ in range(2):  # in turn, so that a disturbance from outside meets both
        alone += asyncio.run(both(0))[1]
        before = api.cpu_times()
        answers, jobs = asyncio.run(both(WINDOWS))
        after = api.cpu_times()
        busy += after.user + after.system - before.user - before.system
        crowded += jobs
        polls += answers
    cores = busy / (2 * seconds)
    p99 = percentile(polls, 99)
    before_ms, after_ms = (statistics.median(exchange.seconds for exchange in jobs) * 1e3 for jobs in (alone, crowded))
    unchanged = sum(exchange.status == 304 for exchange in polls)
    return [
        Figure(f"api's CPU, {WINDOWS} dashboards, {JOBS_PER_S:g} jobs/s", f"{cores:.2f} cores", "≤ 1 core", cores <= 1),
        Figure("poll of the live list, p99", f"{p99:.1f} ms", "≤ 100 ms", p99 <= 100),
        Figure("polls, of them unchanged (304)", f"{len(polls)}, {100 * unchanged / len(polls):.0f} %", "", True),
        Figure("submit → result alone, p50", f"{before_ms:.1f} ms", "", True),
        Figure(
            "the same while they look on",
            f"{after_ms:.1f} ms, {after_ms / before_ms:.2f}×",
            "≤ 1.2×",
            after_ms <= 1.2 * before_ms,
        ),
    ]


def api_of(port: int) -> psutil.Process:
    """The process that listens on the port of `url`."""
    for connection in psutil.net_connections("tcp"):
        if connection.status == psutil.CONN_LISTEN and connection.laddr.port == port and connection.pid:
            return psutil.Process(connection.pid)
    raise LookupError("the api's process was not found")


def fill(database_url: str, job: str, rows: int) -> None:
    """Make `rows` finished jobs, which are copies of `job`, each with a measured point."""
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute(
            """
            insert into jobs (id, owner_id, kind, priority, needs, timeout_s, spec, status, created_at, started_at,
                              finished_at, result, version)
            select gen_random_uuid(), owner_id, kind, priority, needs, timeout_s, spec, status,
                   created_at, started_at, finished_at, result, version
            from (select * from jobs where id = %s) one, generate_series(1, %s)
            """,
            (job, rows),
        )
        connection.execute(
            """
            insert into measurements (job_id, kind, op, dtype, strategy, backend, device, n, bytes, samples, kernel_ms)
            select id, 'reduce', 'sum', 'float64', 'exact', 'cpu', 'CPU', 100, 800, 1, 0.1 from jobs
            where id <> %s
            """,
            (job,),
        )
        connection.execute("vacuum analyze jobs")
        connection.execute("vacuum analyze measurements")


def pages(window: Window, job: str, rows: int, times: int) -> list[Figure]:
    """Measure the slowest page over many jobs. A pause before each page lets shared answers expire."""

    async def ask() -> dict[str, list[Exchange]]:
        connection = Connection(window.host, window.port)
        await connection.open()
        answers_of: dict[str, list[Exchange]] = {}
        for path in PAGES * times:
            answers_of.setdefault(path, []).append(await connection.send(window.get(path.format(job=job))))
        connection.close()
        return answers_of

    asyncio.run(ask())
    answers_of = asyncio.run(ask())
    assert all(answer.status == 200 for answers in answers_of.values() for answer in answers), "a page failed"
    worst = {path: percentile(answers, 95) for path, answers in answers_of.items()}
    path, p95 = max(worst.items(), key=lambda item: item[1])
    return [
        Figure(
            f"slowest page over {rows:,} jobs ({path.partition('?')[0]}), p95", f"{p95:.0f} ms", "≤ 200 ms", p95 <= 200
        )
    ]


@contextmanager
def browser() -> Iterator[Any]:
    """The path of a headless browser, or None where this machine has none."""
    executable = next(filter(None, map(shutil.which, ("chromium", "google-chrome", "chromium-browser"))), None)
    if executable is None:
        yield None
        return
    from playwright.sync_api import sync_playwright

    flags = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-sync"]
    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=executable, args=flags)
        yield launched
        launched.close()


def painted(service: Service, benchmark: str, times: int) -> list[Figure]:
    """Measure the first paint of the list with an empty cache, and the bytes that it and a page of charts transfer."""
    paints: list[float] = []
    weights: dict[str, float] = {}
    with browser() as launched:
        if launched is None:
            return []
        for _ in range(times):
            context = launched.new_context(base_url=service.url)
            page = context.new_page()
            page.goto("/sign-in")
            page.fill("#token", service.token)
            page.click("button.primary")
            page.wait_for_url("**/")
            session = context.new_cdp_session(page)
            session.send("Network.enable")
            session.send("Network.clearBrowserCache")
            for name, path in (("jobs", "/jobs"), ("charts", f"/jobs/{benchmark}")):
                page.goto(path, wait_until="networkidle" if name == "jobs" else "load")
                if name == "charts":
                    page.wait_for_selector("[data-drawn]")
                else:
                    paints.append(page.evaluate("performance.getEntriesByName('first-paint')[0].startTime"))
                weights[name] = page.evaluate(_TRANSFERRED) / 1e3
            context.close()
    paint = statistics.median(paints)
    return [
        Figure("first paint of Jobs, empty cache, median", f"{paint:.0f} ms", "≤ 300 ms", paint <= 300),
        Figure("weight of Jobs", f"{weights['jobs']:.0f} kB", "≤ 150 kB", weights["jobs"] <= 150),
        Figure("weight of a job with charts", f"{weights['charts']:.0f} kB", "≤ 1000 kB", weights["charts"] <= 1000),
    ]


_TRANSFERRED = """
['navigation', 'resource'].flatMap(type => performance.getEntriesByType(type))
    .reduce((sum, one) => sum + one.encodedBodySize, 0)
"""


def measure(service: Service, database_url: str, rows: int, seconds: float, times: int) -> Sequence[Figure]:
    """Measure all figures, in order."""
    window = Window.of(service)
    headers = {"Authorization": f"Bearer {service.token}", "Prefer": "wait=60"}
    with httpx.Client(base_url=service.url, headers=headers, timeout=90) as client:
        job = client.post("/v1/jobs", content=body(100), headers={"Content-Type": "application/json"}).json()["id"]
        spec = {"kind": "benchmark", "strategies": ["exact", "numpy"], "sizes": [1000, 100_000], "time_limit_s": 0.2}
        benchmark = client.post("/v1/jobs", json=spec).json()["id"]
    fill(database_url, job, rows)
    return [
        *pages(window, job, rows, times),
        *watched(window, seconds),
        *painted(service, benchmark, times),
    ]


def main() -> int:
    """Measure and print; 0 if every figure is met."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, help="write the figures with their provenance as JSON")
    parser.add_argument("--rows", type=int, default=200_000, help="finished jobs on record")
    parser.add_argument("--seconds", type=float, default=30.0, help="of each of the four runs under load")
    parser.add_argument("--times", type=int, default=10, help="each page is asked for")
    arguments = parser.parse_args()
    with measured_service() as (service, data_dir):
        database_url = (data_dir / "database_url").read_text().strip()
        figures = measure(service, database_url, arguments.rows, arguments.seconds, arguments.times)
    return report("Warpfold's dashboard", figures, arguments.out)


if __name__ == "__main__":
    sys.exit(main())
