"""How fast small jobs drain, compared with RQ's SimpleWorker in the same run: `python -m benchmarks.drain`.

The benchmark starts `warpfold serve --slots cpu` in a temporary folder. In a round it drains the slot, submits jobs,
and resumes the slot; the rate is taken from the first claim to the last end, as Postgres has their times. The peer's
rate is taken from the begin of its first job to the end of its last. Both sum the same values, in alternating rounds,
and the figure is the ratio of the medians.

Then one slot and four slots drain jobs that sleep for some milliseconds in their children. These figures show what the
slots share, however many cores the machine has.
"""

import argparse
import json
import statistics
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import repeat
from pathlib import Path
from uuid import UUID

import psycopg

from benchmarks import rq_peer
from benchmarks.figures import Figure, environment, measured_service, report
from benchmarks.http_load import request
from benchmarks.service import Target, body
from benchmarks.sleeping import sleeping_slot
from warpfold.client.demo.service import Service

_SLEEP_S = 0.01
_SLOTS = 4
_SPAN = """
    select count(*) filter (where status = 'succeeded'), extract(epoch from max(finished_at) - min(started_at))
    from jobs where id = any(%s)
"""
_WORKERS = "select id from workers where state in ('idle', 'running') and expires_at > now() order by id"


@dataclass(frozen=True, slots=True)
class Bench:
    """A running service, and the addresses of its servers."""

    target: Target
    database_url: str
    redis_url: str
    data_dir: Path

    def drain(self, count: int, spec: bytes) -> float:
        """The jobs a second of one round, by all slots that run."""
        workers = self._workers()
        self._tell(workers, "drain")
        load = self.target.load(4, repeat(request("POST", "/v1/jobs", self.target.token, spec), count))
        ids = [UUID(json.loads(exchange.body)["id"]) for exchange in load.exchanges if exchange.status == 202]
        assert len(ids) == count, f"{count - len(ids)} of {count} jobs were not accepted"
        self._tell(workers, "resume")
        with psycopg.connect(self.database_url, autocommit=True) as connection:
            while True:
                row = connection.execute(_SPAN, (ids,)).fetchone()
                assert row is not None
                if row[0] == count:
                    return count / float(row[1])
                time.sleep(0.05)

    def until_there_are(self, slots: int) -> None:
        """Wait until so many slots take jobs."""
        while len(self._workers()) != slots:
            time.sleep(0.1)

    def _workers(self) -> Sequence[str]:
        with psycopg.connect(self.database_url, autocommit=True) as connection:
            return [str(row[0]) for row in connection.execute(_WORKERS)]

    def _tell(self, workers: Sequence[str], action: str) -> None:
        paths = [f"/v1/workers/{worker}/{action}" for worker in workers]
        load = self.target.load(1, iter([request("POST", path, self.target.token) for path in paths]))
        assert all(exchange.status < 300 for exchange in load.exchanges), f"not every worker could be told to {action}"


@contextmanager
def bench(service: Service, data_dir: Path) -> Iterator[Bench]:
    """The bench of a running service."""
    from warpfold.worker.embedded import EmbeddedPostgres, EmbeddedRedis

    host, port = service.url.removeprefix("http://").split(":")
    yield Bench(
        Target(host, int(port), service.token),
        EmbeddedPostgres(data_dir / "postgres").url,
        EmbeddedRedis(data_dir / "redis").url,
        data_dir,
    )


def beside_rq(bench: Bench, count: int, rounds: int, values: int) -> list[Figure]:
    """One CPU slot and RQ's SimpleWorker, in alternating rounds."""
    spec = body(values)
    numbers = json.loads(spec)["source"]["values"]
    peer_url = bench.redis_url.replace("db=0", "db=5")
    bench.drain(count, spec)  # compiles kernels and prepares statements
    pairs = [(bench.drain(count, spec), rq_peer.drained_per_second(peer_url, count, numbers)) for _ in range(rounds)]
    print(f"{values:,} values:", ", ".join(f"{ours:.0f}/s and {theirs:.0f}/s" for ours, theirs in pairs), flush=True)
    ours, theirs = (statistics.median(each) for each in zip(*pairs, strict=True))
    return [
        Figure(f"{count} waiting jobs of {values:,} values, Warpfold, one CPU slot", f"{ours:.0f}/s", "", True),
        Figure("the same values, RQ SimpleWorker, numpy.sum", f"{theirs:.0f}/s", "", True),
        Figure("ratio", f"{ours / theirs:.2f}", "≥ 3", ours / theirs >= 3),
    ]


def several_slots(bench: Bench, count: int, rounds: int) -> list[Figure]:
    """One slot and four slots, whose children sleep for each job instead of computing."""
    spec = json.loads(body(3)) | {"backend": "cuda", "source": {"type": "values", "values": [1.0], "dtype": "float64"}}
    rates = []
    for slots in (1, _SLOTS):
        with ExitStack() as running:
            for index in range(slots):
                running.enter_context(sleeping_slot(bench.data_dir, f"cuda:{index}", _SLEEP_S))
            bench.until_there_are(1 + slots)
            bench.drain(count, json.dumps(spec).encode())
            rates.append(statistics.median(bench.drain(count, json.dumps(spec).encode()) for _ in range(rounds)))
        bench.until_there_are(1)
    single, several = rates
    return [
        Figure(f"{count} jobs that sleep {_SLEEP_S * 1e3:g} ms, one slot", f"{single:.0f}/s", "", True),
        Figure(f"the same, {_SLOTS} slots", f"{several:.0f}/s", "", True),
        Figure("ratio", f"{several / single:.2f}", "≥ 2.5", several / single >= 2.5),
    ]


def main() -> int:
    """Measure and print; returns 0 if every figure meets its target."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, help="write the figures with their provenance as JSON")
    parser.add_argument("--jobs", type=int, default=100, help="how many jobs wait in a round (%(default)s)")
    parser.add_argument("--rounds", type=int, default=5, help="how many rounds each figure takes (%(default)s)")
    options = parser.parse_args()
    # The process that compiles ahead would take processor time from the peer, and is paused while we run jobs.
    with (
        environment(WARPFOLD_COMPILE_AHEAD="false"),
        measured_service() as (service, data_dir),
        bench(service, data_dir) as place,
    ):
        figures = [
            *beside_rq(place, options.jobs, options.rounds, 1000),
            *beside_rq(place, options.jobs, options.rounds, 3),
            *several_slots(place, 4 * options.jobs, options.rounds),
        ]
    return report("Drain of small jobs", figures, options.out)


if __name__ == "__main__":
    sys.exit(main())
