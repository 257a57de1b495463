"""How fast the service is, beside a plain RQ worker in the same run: `python -m benchmarks.service`.

Starts `warpfold serve --slots cpu` in a temporary folder, measures, prints one table; `--out` writes it as JSON.
"""

import argparse
import asyncio
import json
import platform
import random
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

import psutil
import psycopg
from rich.console import Console
from rich.table import Table

from benchmarks import rq_peer
from benchmarks.http_load import Load, drive, request
from client.demo.service import Service, running_service

TERMINAL = ("succeeded", "failed", "cancelled")


@dataclass(frozen=True, slots=True)
class Figure:
    """One measured figure beside the one it should reach."""

    name: str
    measured: str
    target: str
    met: bool


@dataclass(frozen=True, slots=True)
class Target:
    """Where the service under test is."""

    host: str
    port: int
    token: str
    data_dir: Path

    def load(self, connections: int, requests: Iterator[bytes]) -> Load:
        return asyncio.run(drive(self.host, self.port, connections, lambda _: next(requests, None)))


def body(count: int = 1000) -> bytes:
    """A job over `count` values."""
    rng = random.Random(count)
    values = [rng.gauss(0, 1) for _ in range(count)]
    source = {"type": "values", "values": values, "dtype": "float64"}
    return json.dumps({"kind": "reduce", "op": "sum", "source": source}).encode()


def repeated(item: bytes, times: int) -> Iterator[bytes]:
    return (item for _ in range(times))


def latency(target: Target, times: int = 200) -> list[Figure]:
    """Submit → result of a 1,000-value job on an idle service, one after the other."""
    post = request("POST", "/v1/jobs", target.token, body(), Prefer="wait=10")
    target.load(1, repeated(post, 20))
    load = target.load(1, repeated(post, times))
    ended = sum(json.loads(one.body)["status"] == "succeeded" for one in load.exchanges)
    assert ended == times, f"{times - ended} of {times} jobs did not succeed"
    p50, p95 = load.percentile(50), load.percentile(95)
    return [
        Figure("submit → result, 1,000 values, p50", f"{p50:.1f} ms", "≤ 15 ms", p50 <= 15),
        Figure("submit → result, 1,000 values, p95", f"{p95:.1f} ms", "≤ 50 ms", p95 <= 50),
    ]


def throughput(target: Target, redis_url: str, count: int = 500) -> list[Figure]:
    """Jobs per second from the first submission to the last result, beside RQ's fork worker."""
    post = request("POST", "/v1/jobs", target.token, body())
    started = time.perf_counter()
    load = target.load(4, repeated(post, count))
    accepted = [json.loads(one.body)["id"] for one in load.exchanges if one.status == 202]
    assert len(accepted) == count, f"{count - len(accepted)} of {count} jobs were not accepted"
    page = request("GET", "/v1/jobs?status=succeeded&limit=1", target.token)
    last = request("GET", f"/v1/jobs/{accepted[-1]}", target.token, Prefer="wait=60")
    target.load(1, repeated(last, 1))
    while any(count_active(target)):
        time.sleep(0.005)
    ours = count / (time.perf_counter() - started)
    target.load(1, repeated(page, 1))
    peer = rq_peer.jobs_per_second(redis_url, count, json.loads(body())["source"]["values"])
    return [
        Figure("jobs per second, Warpfold", f"{ours:.0f}/s", "", True),
        Figure("jobs per second, RQ fork worker, numpy.sum", f"{peer:.0f}/s", "", True),
        Figure("ratio of jobs per second to RQ", f"{ours / peer:.2f}", "≥ 1.5", ours / peer >= 1.5),
    ]


def count_active(target: Target) -> tuple[int, int]:
    """Jobs queued and running (at most one page of each)."""
    pages = [request("GET", f"/v1/jobs?status={status}&limit=1", target.token) for status in ("queued", "running")]
    load = target.load(1, iter(pages))
    queued, running = (len(json.loads(one.body)["items"]) for one in load.exchanges)
    return queued, running


def polling(target: Target, times: int = 10_000) -> list[Figure]:
    """`GET /v1/jobs/{id}` with the current ETag, 16 connections, one api process."""
    job = json.loads(
        target.load(1, repeated(request("POST", "/v1/jobs", target.token, body(), Prefer="wait=10"), 1))
        .exchanges[0]
        .body
    )
    path = f"/v1/jobs/{job['id']}"
    etag = _header_etag(target, path)
    poll = request("GET", path, target.token, If_None_Match=etag)
    target.load(16, repeated(poll, 500))
    load = target.load(16, repeated(poll, times))
    assert all(one.status == 304 for one in load.exchanges), "a poll was not answered with 304"
    p99 = load.percentile(99)
    return [
        Figure(
            "GET job, matching ETag, 16 connections", f"{load.per_second:.0f}/s", "≥ 1000/s", load.per_second >= 1000
        ),
        Figure("the same, p99", f"{p99:.1f} ms", "≤ 50 ms", p99 <= 50),
    ]


def _header_etag(target: Target, path: str) -> str:
    import httpx

    response = httpx.get(
        f"http://{target.host}:{target.port}{path}", headers={"Authorization": f"Bearer {target.token}"}
    )
    return response.raise_for_status().headers["ETag"]


def listing(target: Target, database_url: str, rows: int = 1_000_000, times: int = 300) -> list[Figure]:
    """A page of 50 while the table holds a million jobs; every third from somewhere deep in it."""
    with psycopg.connect(database_url) as connection:
        connection.execute(
            """
            insert into jobs (id, owner_id, kind, priority, needs, timeout_s, spec, status, created_at, started_at,
                              finished_at, result, version)
            select gen_random_uuid(), (select min(owner_id) from jobs), kind, priority, needs, timeout_s, spec, status,
                   created_at, started_at, finished_at, result, version
            from (select * from jobs where status = 'succeeded' limit 1) one, generate_series(1, %s)
            """,
            (rows,),
        )
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute("vacuum analyze jobs")
        total = connection.execute("select count(*) from jobs").fetchone()
    first = request("GET", "/v1/jobs?limit=50", target.token)
    deep = json.loads(target.load(1, repeated(first, 1)).exchanges[0].body)["next_cursor"]
    paths = ["/v1/jobs?limit=50", "/v1/jobs?limit=50&status=succeeded", f"/v1/jobs?limit=50&cursor={deep}"]
    pages = (request("GET", paths[index % 3], target.token) for index in range(times))
    target.load(1, repeated(first, 20))
    load = target.load(1, pages)
    assert all(one.status == 200 for one in load.exchanges), "a page failed"
    p95 = load.percentile(95)
    return [Figure(f"page of 50 of {total[0] if total else 0:,} jobs, p95", f"{p95:.1f} ms", "≤ 30 ms", p95 <= 30)]


def memory(data_dir: Path) -> list[Figure]:
    """Resident memory of the slot's parent process, after all of the above."""
    for process in psutil.process_iter(["cmdline", "environ"]):
        line, environment = process.info["cmdline"] or [], process.info["environ"] or {}
        if line[1:3] == ["-m", "worker"] and environment.get("WARPFOLD_DATA_DIR") == str(data_dir):
            mib = process.memory_info().rss / 2**20
            return [Figure("resident memory of a slot's parent", f"{mib:.0f} MiB", "≤ 150 MB", mib * 2**20 <= 150e6)]
    raise LookupError("the worker's parent process was not found")


def measure(service: Service, data_dir: Path) -> list[Figure]:
    """All figures, in order."""
    from worker.embedded import EmbeddedPostgres, EmbeddedRedis

    host, port = service.url.removeprefix("http://").split(":")
    target = Target(host, int(port), service.token, data_dir)
    database_url = EmbeddedPostgres(data_dir / "postgres").url
    redis_url = EmbeddedRedis(data_dir / "redis").url
    return [
        *latency(target),
        *throughput(target, redis_url.replace("db=0", "db=5")),
        *polling(target),
        *listing(target, database_url),
        *memory(data_dir),
    ]


def provenance() -> dict[str, str]:
    """Machine, versions and date of a run."""
    return {
        "date": datetime.now(UTC).date().isoformat(),
        "machine": f"{psutil.cpu_count()} cores, {psutil.virtual_memory().total / 2**30:.0f} GiB, {platform.machine()}",
        "python": platform.python_version(),
        **{name: version(name) for name in ("warpfold", "rq", "redis", "sqlalchemy", "psycopg", "fastapi", "uvicorn")},
    }


def main() -> int:
    """Measure and print; 0 if every figure is met."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, help="write the figures with their provenance as JSON")
    out = parser.parse_args().out
    with tempfile.TemporaryDirectory(prefix="warpfold-bench-") as name:
        root = Path(name)
        (root / "data").mkdir()
        with running_service(root, "--slots", "cpu") as service:
            figures = measure(service, (root / "warpfold").resolve())
    facts = provenance()
    table = Table(title="Warpfold service", caption=", ".join(f"{key} {value}" for key, value in facts.items()))
    for heading in ("figure", "measured", "target", ""):
        table.add_column(heading)
    for one in figures:
        table.add_row(one.name, one.measured, one.target, "" if not one.target else "met" if one.met else "NOT MET")
    Console().print(table)
    if out is not None:
        out.write_text(json.dumps({"provenance": facts, "figures": [asdict(one) for one in figures]}, indent=1) + "\n")
    return 0 if all(one.met for one in figures) else 1


if __name__ == "__main__":
    sys.exit(main())
