"""Jobs accepted a second, one by one and by one batch, and the api's memory: `python -m benchmarks.batches`.

Starts `warpfold serve --slots cpu` in a temporary folder with its slot drained, so that nothing but the acceptance is
measured: single submissions over 4 connections, then batches of 10,000 as specs and as a sweep, in turn. The api's
memory is that of its process and of the process beside it, once after a first batch and at the end.
"""

import argparse
import json
import os
import statistics
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import repeat
from pathlib import Path
from typing import Any

import psutil

from benchmarks.figures import Figure, measured_service, report
from benchmarks.http_load import request
from benchmarks.service import Target
from warpfold.client.demo.service import Service
from warpfold.contract.batches import MAX_JOBS

_ROUNDS = 5
_SINGLE = 400
_MIB = 1 << 20


@dataclass(frozen=True, slots=True)
class Round:
    """One round: jobs accepted a second one by one, and the seconds of a batch of specs and of a sweep."""

    single_per_second: float
    specs_s: float
    sweep_s: float


def spec(seed: int) -> Mapping[str, Any]:
    """A reduction of a thousand generated values."""
    source = {"type": "generate", "distribution": "normal", "n": 1000, "seed": seed}
    return {"kind": "reduce", "op": "sum", "source": source}


def bodies() -> tuple[bytes, bytes]:
    """Ten thousand jobs as specs, and the same as a sweep."""
    seeds = list(range(MAX_JOBS))
    specs = {"specs": [spec(seed) for seed in seeds]}
    return json.dumps(specs).encode(), json.dumps({"sweep": {"spec": spec(0), "over": {"source.seed": seeds}}}).encode()


def accepted(target: Target, body: bytes) -> float:
    """Seconds from sending a batch to its whole answer; the batch is cancelled afterwards."""
    load = target.load(1, repeat(request("POST", "/v1/batches", target.token, body), 1))
    [exchange] = load.exchanges
    assert exchange.status == 201, exchange.body[:500]
    batch = json.loads(exchange.body)
    assert len(batch["jobs"]) == MAX_JOBS
    target.load(1, repeat(request("POST", f"/v1/batches/{batch['id']}/cancel", target.token), 1))
    return exchange.seconds


def one_by_one(target: Target) -> float:
    """Jobs accepted a second over 4 connections."""
    posts: Iterator[bytes] = (
        request("POST", "/v1/jobs", target.token, json.dumps(spec(seed)).encode()) for seed in range(_SINGLE)
    )
    load = target.load(4, posts)
    assert all(exchange.status == 202 for exchange in load.exchanges), "a job was not accepted"
    return load.per_second


def api_memory(data_dir: Path) -> float:
    """Resident MiB of the api's process and of the processes that it started."""
    for process in psutil.process_iter(["cmdline", "environ"]):
        line, environment = process.info["cmdline"] or [], process.info["environ"] or {}
        if "warpfold.app" in line and environment.get("WARPFOLD_DATA_DIR") == str(data_dir):
            together: int = sum(member.memory_info().rss for member in (process, *process.children(recursive=True)))
            return together / _MIB
    raise LookupError("the api's process was not found")


def measure(service: Service, data_dir: Path) -> tuple[list[Figure], Sequence[Round]]:
    """All figures, and the rounds that they are medians of."""
    host, port = service.url.removeprefix("http://").split(":")
    target = Target(host, int(port), service.token)
    drain(target)
    specs, sweep = bodies()
    accepted(target, specs)  # the process for large bodies starts with the first
    one_by_one(target)
    before = api_memory(data_dir)
    rounds = [Round(one_by_one(target), accepted(target, specs), accepted(target, sweep)) for _ in range(_ROUNDS)]
    after = api_memory(data_dir)
    single = statistics.median(round_.single_per_second for round_ in rounds)
    specs_s, sweep_s = (
        statistics.median(getattr(round_, name) for round_ in rounds) for name in ("specs_s", "sweep_s")
    )
    ratio = statistics.median(MAX_JOBS / round_.specs_s / round_.single_per_second for round_ in rounds)
    grown = f"{before:.0f} → {after:.0f} MiB"
    return [
        Figure("jobs accepted a second, one by one over 4 connections", f"{single:.0f}/s", "", True),
        Figure("10,000 specs accepted by one request", f"{specs_s:.2f} s", "≤ 1 s", specs_s <= 1),
        Figure("a sweep of 10,000 jobs accepted by one request", f"{sweep_s:.2f} s", "≤ 1 s", sweep_s <= 1),
        Figure("ratio of the rates, batch to one by one", f"{ratio:.0f}", "≥ 10", ratio >= 10),
        Figure(f"memory of the api over {2 * _ROUNDS} batches", grown, "≤ 1.1 ×", after <= 1.1 * before),
    ], rounds


def drain(target: Target) -> None:
    """Close every slot: what is accepted waits."""
    while True:
        answer = target.load(1, repeat(request("GET", "/v1/workers", target.token), 1)).exchanges[0]
        if workers := json.loads(answer.body)["items"]:
            break
        time.sleep(0.05)
    for worker in workers:
        target.load(1, repeat(request("POST", f"/v1/workers/{worker['id']}/drain", target.token), 1))


def main() -> int:
    """Measure and print; 0 if every figure is met."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, help="write the figures with their provenance as JSON")
    out = parser.parse_args().out
    os.environ["WARPFOLD_COMPILE_AHEAD"] = "false"  # the slot runs nothing, and should do nothing
    with measured_service() as (service, data_dir):
        figures, rounds = measure(service, data_dir)
    for round_ in rounds:
        print(round_)
    return report("Batches", figures, out)


if __name__ == "__main__":
    sys.exit(main())
