"""Lists of jobs at 1,000,000 jobs on record, and what else could cost with depth: `python -m benchmarks.lists`.

Starts Postgres, one api and a dispatcher's housekeeping in a temporary folder, fills the table, and asks over HTTP, one
request after the other: each filter of the list, and each answer that counts what waits, with 100 jobs waiting and with
as many as `--waiting`. Six tenths of the jobs came in batches, of 10,000 and of 50 jobs. Each filter is also asked of
the list in which a batch is one row, as the dashboard reads a page of it with its counts. Prints a row a question;
`--out` writes them as JSON.
"""

import argparse
import asyncio
import json
import logging
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, BinaryIO

import httpx
import psutil
import psycopg
import structlog
from rich.console import Console
from rich.table import Table

from benchmarks.figures import provenance
from benchmarks.http_load import Exchange, percentile
from warpfold import migrations
from warpfold.app.auth.access_tokens import Role, create_token
from warpfold.app.auth.visibility import THE_SERVICE
from warpfold.app.batches import folding
from warpfold.app.config import Settings
from warpfold.app.db import BlockingDatabase, Database
from warpfold.app.jobs import tags
from warpfold.app.jobs.query import JobQuery
from warpfold.client.demo.service import free_port
from warpfold.worker.embedded import EmbeddedPostgres
from warpfold.worker.housekeeping import Housekeeping

_OWNERS = 100
_PAGE = 50
_SEVERAL = ("status", "kind", "owner", "tag")
_GOAL_MS = 30.0
_SHALLOW = 100

_USERS = "insert into users (name, role) select 'user' || i, 'user' from generate_series(1, %s) i"
# Of each 100,000 jobs, five times 10,000 are a batch, and 10,000 are batches of 50 jobs.
_PLACES = """
    create view bench_places as
    select i, case when i / 10000 % 10 < 5 then i / 10000 * 10000 when i / 10000 % 10 = 5 then i / 50 * 50 end as batch
    from generate_series(1, {finished}) i
"""
_BATCHES = """
    insert into batches (id, owner_id, name, count, created_at, settled_at, succeeded, started_at, finished_at)
    select lpad(to_hex(batch), 32, '0')::uuid,
           u.first + case when batch / 50 %% 2 = 0 then 0 else batch / 100 %% %s end,
           'sweep ' || batch, count(*), at, at, count(*), at, at
    from bench_places, (select min(id) as first from users where name like 'user%%') u,
         lateral (select now() - (%s - batch) * interval '1 s' as at) t
    where batch is not null group by batch, u.first, at
"""
# Half of the jobs belong to one user; sweeps of a tenth follow each other; every 10,000th job has a tag that is rare.
_FINISHED = """
    insert into jobs (id, owner_id, kind, priority, needs, timeout_s, spec, tags, status, reason, error, slot, worker,
                      batch_id, batch_index, created_at, dispatched_at, started_at, finished_at, result, version)
    select gen_random_uuid(), coalesce(batches.owner_id, u.first + case when i %% 2 = 0 then 0 else i / 2 %% %s end),
           case when i %% 1000 = 7 then 'accuracy' when i %% 20 = 3 then 'benchmark' else 'reduce' end, 1, 'any', 60,
           '{"kind": "reduce", "op": "sum", "source": {"type": "values", "values": [1.0], "dtype": "float32"}}'::json,
           jsonb_build_object('sweep', 'lr-' || i * 10 / (%s + 1), 'course', 'p' || i %% 20)
               || case when i %% 10000 = 5000 then '{"paper": "draft one"}' else '{}' end::jsonb
               || case when i %% 20 = 4 then jsonb_build_object('run', 'r' || i) else '{}' end,
           case when i %% 33 = 1 then 'failed' when i %% 101 = 2 then 'cancelled' else 'succeeded' end,
           case when i %% 33 = 1 then 'internal' end, case when i %% 33 = 1 then 'a sentence' end,
           'bench:cpu', 'bench:cpu', batches.id, i - batch, t.at, t.at, t.at, t.at + interval '10 ms', '{}'::json, 3
    from bench_places left join batches on batches.id = lpad(to_hex(batch), 32, '0')::uuid
    cross join (select min(id) as first from users where name like 'user%%') u
    cross join lateral (select coalesce(batches.created_at, now() - (%s - i) * interval '1 s') as at) t
    order by i
"""
_SPANS = """
    update batches set first_seq = span.low, last_seq = span.high
    from (select batch_id, min(seq) low, max(seq) high from jobs where batch_id is not null group by batch_id) span
    where batches.id = span.batch_id
"""
_WAITING = """
    insert into jobs (id, owner_id, kind, priority, rank, needs, timeout_s, spec)
    select gen_random_uuid(), u.first + i %% %s, 'reduce', 1, 1, 'any', 60,
           '{"kind": "reduce", "op": "sum", "source": {"type": "values", "values": [1.0], "dtype": "float32"}}'::json
    from generate_series(1, %s) i, (select min(id) as first from users where name like 'user%%') u
"""
_LESS = """
    delete from jobs where id in (
        select id from jobs where status = 'queued' and dispatched_at is null order by seq desc limit %s)
"""
_UNTAGGED = "select id, seq from jobs where tags <> '{}' and seq > %s order by seq limit 20000"
_WAITS = "select count(*) from jobs where status = 'queued'"
_NEWEST = "select extract(epoch from max(created_at)) from jobs where status <> 'queued'"
_LAST = "select id from jobs where status = 'queued' order by seq desc limit 1"

FILTERS: tuple[tuple[str, Mapping[str, Any]], ...] = (
    ("none", {}),
    ("state, frequent", {"status": "succeeded"}),
    ("state, rare", {"status": "cancelled"}),
    ("state and kind that never met", {"status": "cancelled", "kind": "accuracy"}),
    ("several states", {"status": ["failed", "cancelled"]}),
    ("several states and kinds", {"status": ["failed", "cancelled"], "kind": ["benchmark", "accuracy"]}),
    ("owner, one of a hundred", {"owner": "user7"}),
    ("owner, state and kind", {"owner": "user7", "status": "failed", "kind": "benchmark"}),
    ("several owners and states", {"owner": ["user1", "user7"], "status": ["failed", "cancelled"]}),
    ("tag, half a million", {"tag": "course"}),
    ("tag, an old sweep of a tenth", {"tag": "sweep:lr-1"}),
    ("tag, a hundred jobs", {"tag": "paper:draft one"}),
    ("tag that nobody used", {"tag": "nothing:there"}),
    ("two tags that never met", {"tag": ["paper:draft one", "course:p3"]}),
    ("old sweep that failed", {"tag": "sweep:lr-1", "status": "failed"}),
    ("old sweep of one owner", {"tag": "sweep:lr-1", "owner": "user7"}),
    ("text, a word that is rare", {"text": "draft"}),
    ("text, words of an old sweep", {"text": "lr 1"}),
    ("text that begins 50,000 tags", {"text": "r"}),
    ("text that nobody used", {"text": "zebra"}),
    ("an hour, ten days ago", {"since": "@10d", "until": "@9d23h"}),
    ("until ten days ago, failed", {"until": "@10d", "status": "failed"}),
    ("an hour, tag and state", {"since": "@10d", "until": "@9d23h", "tag": "course:p3", "status": "failed"}),
    ("not part of a preset", {"parent": "none"}),
    ("counted: owner and state", {"owner": "user7", "status": "failed", "count": "true"}),
    ("counted: old sweep that failed", {"tag": "sweep:lr-1", "status": "failed", "count": "true"}),
)
"""The filters that are measured, by their names; @ is a time before the newest job."""
DEPTH = (
    ("list of what waits", "/v1/jobs?status=queued"),
    ("the last job in the queue", "/v1/jobs/{last}"),
    ("its stamp, as polls ask", "/live/jobs/{last}?stamp"),
    ("submission", "POST /v1/jobs"),
    ("quotas of all users", "/v1/quotas"),
    ("metrics", "/metrics"),
    ("dashboard: now", "/live/now"),
)
"""Requests whose cost could grow with the queue."""
_SPEC = {"kind": "reduce", "op": "sum", "source": {"type": "values", "values": [1.0], "dtype": "float32"}}


@dataclass(frozen=True, slots=True)
class Row:
    """One question: milliseconds of its answers, the CPU time of Postgres and the api for one of them, and how many
    items the last one had; None where there is no such parameter."""

    question: str
    waiting: int
    p50_ms: float | None = None
    p95_ms: float | None = None
    cpu_ms: float | None = None
    items: int | None = None


@dataclass(frozen=True, slots=True)
class Bench:
    """A database with an api."""

    database_url: str
    http: httpx.Client
    processes: tuple[psutil.Process, ...]

    def fill(self, finished: int) -> None:
        """Put `finished` jobs on record, and note their tags as submissions do."""
        with psycopg.connect(self.database_url, autocommit=True) as connection:
            connection.execute(_USERS, (_OWNERS,))
            connection.execute(_PLACES.format(finished=finished))
            connection.execute(_BATCHES, (_OWNERS, finished))
            connection.execute(_FINISHED, (_OWNERS, finished, finished))
            connection.execute(_SPANS)
        note_tags(self.database_url)
        with psycopg.connect(self.database_url, autocommit=True) as connection:
            connection.execute("vacuum analyze")

    def wait_for(self, waiting: int) -> None:
        """Bring the queue to `waiting` jobs, and let the housekeeping look at it."""
        number = int(self._answer(_WAITS))
        with psycopg.connect(self.database_url, autocommit=True) as connection:
            connection.execute(_LESS, (max(0, number - waiting),))
            connection.execute(_WAITING, (_OWNERS, max(0, waiting - number)))
            connection.execute("vacuum analyze jobs")
        time.sleep(6.0)

    def cpu_s(self) -> float:
        """CPU seconds of Postgres and of the api so far."""
        times = [
            process.cpu_times() for parent in self.processes for process in (parent, *parent.children(recursive=True))
        ]
        return float(sum(each.user + each.system for each in times))

    def last(self) -> str:
        return str(self._answer(_LAST))

    def newest(self) -> float:
        return float(self._answer(_NEWEST))

    def _answer(self, question: str) -> Any:
        with psycopg.connect(self.database_url) as connection:
            row = connection.execute(question.encode()).fetchone()
        assert row is not None
        return row[0]


def note_tags(url: str) -> None:
    """Note the tags of the jobs that were filled in."""
    database = BlockingDatabase(url, application="bench")
    seq = 0
    with psycopg.connect(url, autocommit=True) as connection:
        while rows := connection.execute(_UNTAGGED, (seq,)).fetchall():
            database.run(tags.note, [row[0] for row in rows])
            seq = rows[-1][1]
    database.close()


@contextmanager
def bench() -> Iterator[Bench]:
    """Postgres, an api and a housekeeping, in a temporary folder."""
    with tempfile.TemporaryDirectory(prefix="warpfold-lists-", dir="/tmp") as name:
        root = Path(name)
        root.chmod(0o711)
        postgres = EmbeddedPostgres(root / "postgres", {"shared_buffers": "512MB", "max_wal_size": "4GB"})
        postgres.start()
        try:
            migrations.upgrade(postgres.url)
            database = BlockingDatabase(postgres.url, application="warpfold-housekeeping", durable=False)
            token = database.run(create_token, "root", Role.ADMIN)
            settings = Settings(database_url=postgres.url, redis_url="redis://127.0.0.1:1/0", data_dir=root / "data")
            housekeeping = Housekeeping(settings, database)
            housekeeping.start()
            port = free_port()
            environment = {
                **os.environ,
                "WARPFOLD_DATABASE_URL": postgres.url,
                "WARPFOLD_REDIS_URL": settings.redis_url,
                "WARPFOLD_DATA_DIR": str(root / "data"),
                "WARPFOLD_MAX_QUEUED_PER_USER": "1000000",
            }
            command = [sys.executable, "-m", "warpfold.app", "--port", str(port)]
            with (root / "api.log").open("wb") as log, _process(command, environment, log) as api:
                headers = {"Authorization": f"Bearer {token}", "Origin": f"http://127.0.0.1:{port}"}
                with httpx.Client(base_url=f"http://127.0.0.1:{port}", headers=headers, timeout=120.0) as http:
                    _until_ready(http)
                    answer = http.post("/sign-in", data={"token": token})
                    http.cookies.set("warpfold_session", answer.cookies["warpfold_session"])
                    assert postgres.pid is not None
                    yield Bench(postgres.url, http, (psutil.Process(postgres.pid), api))
            housekeeping.stop()
            database.close()
        finally:
            postgres.stop()


@contextmanager
def _process(command: Sequence[str], environment: Mapping[str, str], log: BinaryIO) -> Iterator[psutil.Process]:
    process = subprocess.Popen(command, env=environment, stderr=log)
    try:
        yield psutil.Process(process.pid)
    finally:
        process.terminate()
        process.wait()


def _until_ready(http: httpx.Client) -> None:
    for _ in range(600):
        with suppress(httpx.TransportError):
            http.get("/healthz")
            return
        time.sleep(0.1)
    raise TimeoutError("the api did not start")


def measure(bench: Bench, row: Row, method: str, path: str, times: int, **request: Any) -> Row:
    """Ask so many times, one request after the other, after three that do not count; `row` with what came out."""
    exchanges = []
    busy_s = 0.0
    for turn in range(times + 3):
        if turn == 3:
            busy_s = bench.cpu_s()
        started = time.perf_counter()
        answer = bench.http.request(method, path, **request)
        if answer.status_code == 422:
            return row
        exchanges.append(Exchange(answer.status_code, b"", time.perf_counter() - started))
        answer.raise_for_status()
    cpu_ms = (bench.cpu_s() - busy_s) / times * 1e3
    items = None
    with suppress(ValueError, KeyError, TypeError):
        items = len(answer.json()["items"])
    p50_ms, p95_ms = (percentile(exchanges[3:], percent) for percent in (50, 95))
    return replace(row, p50_ms=p50_ms, p95_ms=p95_ms, cpu_ms=cpu_ms, items=items)


def of_filters(bench: Bench, times: int) -> Iterator[Row]:
    """A row for each filter."""
    newest = bench.newest()
    for question, filters in FILTERS:
        yield measure(bench, Row(question, 0), "GET", "/v1/jobs", times, params=_with_times(filters, newest))


async def of_folded(bench: Bench, times: int) -> Sequence[Row]:
    """A row for each filter of the list in which a batch is one row."""
    newest = bench.newest()
    database = Database(bench.database_url, application="bench")
    rows = []
    for question, filters in FILTERS:
        if filters.get("parent") or filters.get("count"):
            continue  # every such list has these
        asked = {
            name: [value] if name in _SEVERAL and isinstance(value, str) else value
            for name, value in _with_times(filters, newest).items()
        }
        chosen = replace(JobQuery.model_validate(asked).chosen(THE_SERVICE), parent=False)
        exchanges = []
        for _ in range(3):
            page = await database.search(folding.page, chosen, _PAGE, counted=True)
        busy_s = bench.cpu_s()
        for _ in range(times):
            started = time.perf_counter()
            page = await database.search(folding.page, chosen, _PAGE, counted=True)
            exchanges.append(Exchange(200, b"", time.perf_counter() - started))
        cpu_ms = (bench.cpu_s() - busy_s) / times * 1e3
        p50_ms, p95_ms = (percentile(exchanges, percent) for percent in (50, 95))
        rows.append(Row(f"folded: {question}", 0, p50_ms, p95_ms, cpu_ms, len(page.rows)))
    await database.close()
    return rows


def of_depth(bench: Bench, waiting: int, times: int) -> Iterator[Row]:
    """A row for each request that could cost more where more waits."""
    bench.wait_for(waiting)
    last = bench.last()
    for question, request in DEPTH:
        method, _, path = request.rpartition(" ")
        body = {"json": _SPEC} if method == "POST" else {}
        headers = {"If-None-Match": '"another"', "Prefer": "wait=0"} if path.endswith("?stamp") else {}
        path = path.removesuffix("?stamp").format(last=last)
        # The dashboard shares an answer for a second: each of these is asked by itself.
        yield measure(bench, Row(question, waiting), method or "GET", path, times, headers=headers, **body)


def _with_times(filters: Mapping[str, Any], newest: float) -> dict[str, Any]:
    def moment(text: str) -> str:
        days, _, hours = text.removeprefix("@").partition("d")
        ago = timedelta(days=int(days), hours=int(hours.rstrip("h") or 0))
        return (datetime.fromtimestamp(newest, UTC) - ago).isoformat()

    return {
        name: moment(value) if isinstance(value, str) and value.startswith("@") else value
        for name, value in filters.items()
    }


def table(rows: Sequence[Row]) -> Table:
    """Milliseconds of every question."""
    shown = Table(title="Milliseconds of an answer over HTTP")
    for heading in ("question", "waiting", "p50", "p95", "CPU", "items"):
        shown.add_column(heading, justify="left" if heading == "question" else "right")
    for row in rows:
        figures = ["–" if value is None else f"{value:.1f}" for value in (row.p50_ms, row.p95_ms, row.cpu_ms)]
        shown.add_row(row.question, f"{row.waiting:,}", *figures, "" if row.items is None else str(row.items))
    return shown


def main() -> int:
    """Measure and print; 0 if every filter's p95 is within 30 ms."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--finished", type=int, default=1_000_000, metavar="N", help="jobs on record")
    parser.add_argument("--waiting", type=int, default=100_000, metavar="N", help="jobs in the deep queue")
    parser.add_argument("--times", type=int, default=60, metavar="N", help="requests of each question")
    parser.add_argument("--out", type=Path, help="write the rows with their provenance as JSON")
    arguments = parser.parse_args()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING))
    with bench() as service:
        service.fill(arguments.finished)
        filters = [*of_filters(service, arguments.times), *asyncio.run(of_folded(service, arguments.times))]
        depth = [
            row for waiting in (_SHALLOW, arguments.waiting) for row in of_depth(service, waiting, arguments.times)
        ]
    facts = provenance()
    shown = table([*filters, *depth])
    shown.caption = ", ".join(f"{key} {value}" for key, value in facts.items())
    Console().print(shown)
    slow = [row.question for row in filters if (row.p95_ms or 0.0) > _GOAL_MS]
    print(f"filters whose p95 is over {_GOAL_MS:g} ms: {', '.join(slow) or 'none'}")
    if arguments.out is not None:
        written = {"provenance": facts, "rows": [asdict(row) for row in (*filters, *depth)]}
        arguments.out.write_text(json.dumps(written, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return 1 if slow else 0


if __name__ == "__main__":
    sys.exit(main())
