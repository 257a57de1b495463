"""How fast the service is, compared with a plain RQ worker in the same run: `python -m benchmarks.service`.

The benchmark starts `warpfold serve --slots cpu` in a temporary folder, measures, and prints one table; `--out` writes
the figures as JSON.
"""

import argparse
import asyncio
import json
import random
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import repeat
from pathlib import Path

import psutil
import psycopg

from benchmarks import rq_peer
from benchmarks.figures import Figure, measured_service, report
from benchmarks.http_load import Load, drive, percentile, request
from warpfold.client.demo.service import Service


@dataclass(frozen=True, slots=True)
class Target:
    """The address of the service under test, and a token for it."""

    host: str
    port: int
    token: str

    def load(self, connections: int, requests: Iterator[bytes]) -> Load:
        """Send `requests` over so many connections, each of which has one request under way at a time."""
        return asyncio.run(drive(self.host, self.port, connections, lambda _: next(requests, None)))


def body(count: int = 1000) -> bytes:
    """The body of a request for the sum of `count` values."""
    rng = random.Random(count)
    values = [rng.gauss(0, 1) for _ in range(count)]
    source = {"type": "values", "values": values, "dtype": "float64"}
    return json.dumps({"kind": "reduce", "op": "sum", "source": source}).encode()


def latency(target: Target, times: int = 200) -> list[Figure]:
    """The time from submission to result of jobs of 1,000 values, one after another, on an idle service."""
    post = request("POST", "/v1/jobs", target.token, body(), Prefer="wait=10")
    target.load(1, repeat(post, 20))
    load = target.load(1, repeat(post, times))
    ended = sum(json.loads(exchange.body)["status"] == "succeeded" for exchange in load.exchanges)
    assert ended == times, f"{times - ended} of {times} jobs did not succeed"
    p50, p95 = percentile(load.exchanges, 50), percentile(load.exchanges, 95)
    return [
        Figure("submit → result, 1,000 values, p50", f"{p50:.1f} ms", "≤ 8 ms", p50 <= 8),
        Figure("submit → result, 1,000 values, p95", f"{p95:.1f} ms", "≤ 15 ms", p95 <= 15),
    ]


def throughput(target: Target, redis_url: str, count: int = 500) -> list[Figure]:
    """Jobs per second from the first submission to the last result, compared with RQ's worker that forks."""
    post = request("POST", "/v1/jobs", target.token, body())
    started = time.perf_counter()
    load = target.load(4, repeat(post, count))
    accepted = [json.loads(exchange.body)["id"] for exchange in load.exchanges if exchange.status == 202]
    assert len(accepted) == count, f"{count - len(accepted)} of {count} jobs were not accepted"
    last = request("GET", f"/v1/jobs/{accepted[-1]}", target.token, Prefer="wait=60")
    target.load(1, repeat(last, 1))
    while any(count_active(target)):
        time.sleep(0.005)
    ours = count / (time.perf_counter() - started)
    peer = rq_peer.jobs_per_second(redis_url, count, json.loads(body())["source"]["values"])
    return [
        Figure("jobs per second, Warpfold", f"{ours:.0f}/s", "", True),
        Figure("jobs per second, RQ fork worker, numpy.sum", f"{peer:.0f}/s", "", True),
        Figure("ratio of jobs per second to RQ", f"{ours / peer:.2f}", "≥ 1.5", ours / peer >= 1.5),
    ]


def count_active(target: Target) -> tuple[int, int]:
    """How many jobs are queued and how many are running; each is counted up to one."""
    pages = [request("GET", f"/v1/jobs?status={status}&limit=1", target.token) for status in ("queued", "running")]
    load = target.load(1, iter(pages))
    queued, running = (len(json.loads(exchange.body)["items"]) for exchange in load.exchanges)
    return queued, running


def polling(target: Target, times: int = 10_000) -> list[Figure]:
    """The rate of `GET /v1/jobs/{id}` with the current ETag, over 16 connections to one api process."""
    job = json.loads(
        target.load(1, repeat(request("POST", "/v1/jobs", target.token, body(), Prefer="wait=10"), 1)).exchanges[0].body
    )
    path = f"/v1/jobs/{job['id']}"
    etag = target.load(1, repeat(request("GET", path, target.token), 1)).exchanges[0].etag
    assert etag is not None, "a job has no ETag"
    poll = request("GET", path, target.token, If_None_Match=etag)
    target.load(16, repeat(poll, 500))
    load = target.load(16, repeat(poll, times))
    assert all(exchange.status == 304 for exchange in load.exchanges), "a poll was not answered with 304"
    p99 = percentile(load.exchanges, 99)
    return [
        Figure(
            "GET job, matching ETag, 16 connections", f"{load.per_second:.0f}/s", "≥ 1000/s", load.per_second >= 1000
        ),
        Figure("the same, p99", f"{p99:.1f} ms", "≤ 50 ms", p99 <= 50),
    ]


def listing(target: Target, database_url: str, rows: int = 1_000_000, times: int = 300) -> list[Figure]:
    """The time of a page of 50 jobs while the table holds a million; every third page is read from a cursor."""
    with psycopg.connect(database_url) as connection:
        connection.execute(
            """
            insert into jobs (id, owner_id, kind, priority, needs, timeout_s, spec, status, created_at, started_at,
                              finished_at, result, version)
            select gen_random_uuid(), (select min(owner_id) from jobs), kind, priority, needs, timeout_s, spec, status,
                   created_at, started_at, finished_at, result, version
            from (select * from jobs where status = 'succeeded' limit 1) template, generate_series(1, %s)
            """,
            (rows,),
        )
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute("vacuum analyze jobs")
        total = connection.execute("select count(*) from jobs").fetchone()
    first = request("GET", "/v1/jobs?limit=50", target.token)
    deep = json.loads(target.load(1, repeat(first, 1)).exchanges[0].body)["next_cursor"]
    paths = ["/v1/jobs?limit=50", "/v1/jobs?limit=50&status=succeeded", f"/v1/jobs?limit=50&cursor={deep}"]
    pages = (request("GET", paths[index % 3], target.token) for index in range(times))
    target.load(1, repeat(first, 20))
    load = target.load(1, pages)
    assert all(exchange.status == 200 for exchange in load.exchanges), "a page failed"
    p95 = percentile(load.exchanges, 95)
    return [Figure(f"page of 50 of {total[0] if total else 0:,} jobs, p95", f"{p95:.1f} ms", "≤ 30 ms", p95 <= 30)]


def memory(data_dir: Path) -> list[Figure]:
    """The resident memory of the slot's parent process, after the other measurements."""
    log = data_dir / "logs" / "worker-cpu.log"
    for process in psutil.process_iter(["cmdline"]):
        if "warpfold.worker" in (process.info["cmdline"] or []) and _writes_to(process, log):
            mib = process.memory_info().rss / 2**20
            return [Figure("resident memory of a slot's parent", f"{mib:.0f} MiB", "≤ 150 MB", mib * 2**20 <= 150e6)]
    raise LookupError("the worker's parent process was not found")


def _writes_to(process: psutil.Process, log: Path) -> bool:
    with suppress(OSError):
        return Path(f"/proc/{process.pid}/fd/2").readlink() == log
    return False


def measure(service: Service, data_dir: Path) -> list[Figure]:
    """All figures, in order."""
    from warpfold.worker.embedded import EmbeddedPostgres, EmbeddedRedis

    host, port = service.url.removeprefix("http://").split(":")
    target = Target(host, int(port), service.token)
    database_url = EmbeddedPostgres(data_dir / "postgres").url
    redis_url = EmbeddedRedis(data_dir / "redis").url
    return [
        *latency(target),
        *throughput(target, redis_url.replace("db=0", "db=5")),
        *polling(target),
        *listing(target, database_url),
        *memory(data_dir),
    ]


def main() -> int:
    """Measure and print; returns 0 if every figure meets its target."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, help="write the figures with their provenance as JSON")
    out = parser.parse_args().out
    with measured_service() as (service, data_dir):
        figures = measure(service, data_dir)
    return report("Warpfold service", figures, out)


if __name__ == "__main__":
    sys.exit(main())
