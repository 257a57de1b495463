"""What an idle service costs: `python -m benchmarks.idle` prints the processor time and the memory of each process.

The benchmark starts `warpfold serve --slots cpu` in a temporary folder, waits until the spare child stands by, and
watches all of its processes for half a minute without a request. Memory is given as PSS, in which a page that several
processes share is divided among them, and as RSS, in which it counts for each of them.
"""

import argparse
import json
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil

from benchmarks.figures import Figure, environment, measured_service, report
from warpfold.client.api import Client
from warpfold.worker.embedded import EmbeddedPostgres, EmbeddedRedis

A_JOB: Mapping[str, object] = {"kind": "reduce", "op": "sum", "source": {"type": "values", "values": [1.0, 2.0]}}
_SETTLE_S = 5.0
_MOST_PERCENT = 2.0
_ROLES = (
    ("warpfold.app", "api"),
    ("warpfold.worker.dispatcher", "dispatcher"),
    ("warpfold.worker.serve", "serve"),
    ("warpfold.worker.nursery", "nursery"),
    ("warpfold.worker", "worker"),
)


@dataclass(frozen=True, slots=True)
class Cost:
    """What the processes of one role take: percent of a core, and bytes of memory."""

    role: str
    processes: int
    percent: float
    pss: int
    rss: int


def processes(data_dir: Path) -> list[tuple[str, psutil.Process]]:
    """Every process of the service in `data_dir`, with its role."""
    children = _children(data_dir)
    servers = {"Postgres": EmbeddedPostgres(data_dir / "postgres").pid, "Redis": EmbeddedRedis(data_dir / "redis").pid}
    watched: list[tuple[str, psutil.Process]] = []
    for role, pid in servers.items():
        assert pid is not None, f"{role} does not run"
        server = psutil.Process(pid)
        watched += [(role, process) for process in (server, *server.children(recursive=True))]
    (serve,) = psutil.Process().children()  # which this process started
    of_servers = {process.pid for _, process in watched}
    ours = [process for process in (serve, *serve.children(recursive=True)) if process.pid not in of_servers]
    return [*((children.get(process.pid, _role(process)), process) for process in ours), *watched]


def _children(data_dir: Path) -> Mapping[int, str]:
    """The role of each child of the worker, by the worker's log."""
    lines = (data_dir / "logs" / "worker-cpu.log").read_text().splitlines()
    notes = [json.loads(line) for line in lines if line.startswith("{")]
    roles = {note["pid"]: "spare child" for note in notes if note["event"] == "spare child stands by"}
    return roles | {note["pid"]: "child" for note in notes if note["event"] == "child ready"}


def _role(process: psutil.Process) -> str:
    line = " ".join(process.cmdline())
    return next((role for words, role in _ROLES if words in line), line)


def idle(service_dir: Path, seconds: float) -> list[Cost]:
    """The costs by role over `seconds`."""
    watched = processes(service_dir)
    before = {process.pid: _used_s(process) for _, process in watched}
    time.sleep(seconds)
    costs = []
    for role in dict.fromkeys(role for role, _ in watched):
        alive = [process for name, process in watched if name == role and process.is_running()]
        used_s = sum(_used_s(process) - before[process.pid] for process in alive)
        memory = [process.memory_full_info() for process in alive]
        costs.append(
            Cost(
                role,
                len(alive),
                used_s / seconds * 100,
                sum(usage.pss for usage in memory),
                sum(usage.rss for usage in memory),
            )
        )
    return costs


def _used_s(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)


def table(costs: Sequence[Cost]) -> str:
    """A Markdown table of the costs."""
    total = Cost(
        "all",
        sum(cost.processes for cost in costs),
        sum(cost.percent for cost in costs),
        sum(cost.pss for cost in costs),
        sum(cost.rss for cost in costs),
    )
    lines = ["| process | number | processor, % of a core | PSS | RSS |", "|---|---:|---:|---:|---:|"]
    for cost in (*costs, total):
        mib = [f"{size / 2**20:.0f} MiB" for size in (cost.pss, cost.rss)]
        lines.append(f"| {cost.role} | {cost.processes} | {cost.percent:.2f} | {mib[0]} | {mib[1]} |")
    return "\n".join(lines)


def figures(costs: Sequence[Cost]) -> list[Figure]:
    """The costs, and the target of their sum."""
    percent = sum(cost.percent for cost in costs)
    rows = [
        Figure(
            f"idle {cost.role} ({cost.processes})",
            f"{cost.percent:.2f} % of a core, PSS {cost.pss / 2**20:.0f} MiB, RSS {cost.rss / 2**20:.0f} MiB",
            "",
            True,
        )
        for cost in costs
    ]
    met = percent <= _MOST_PERCENT
    return [*rows, Figure("idle service, all processes", f"{percent:.2f} % of a core", f"≤ {_MOST_PERCENT:g} %", met)]


def measured(seconds: float) -> list[Cost]:
    """Start a service, have it run a job, wait until it rests, and watch it for `seconds`."""
    with environment(WARPFOLD_COMPILE_AHEAD="false"), measured_service() as (service, data_dir):
        with Client(service.url, service.token) as client:
            assert client.reduction(client.submit(A_JOB)).value == 3.0
        give_up = time.monotonic() + 60
        while "spare child" not in _children(data_dir).values():
            assert time.monotonic() < give_up, "no spare child stands by"
            time.sleep(0.1)
        time.sleep(_SETTLE_S)
        return idle(data_dir, seconds)


def main() -> int:
    """Measure and print; returns 0 if the service is idle enough."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=30.0, help="how long to watch")
    parser.add_argument("--out", type=Path, help="write the figures with their provenance as JSON")
    options = parser.parse_args()
    costs = measured(options.seconds)
    print(table(costs))
    return report("An idle service", figures(costs), options.out)


if __name__ == "__main__":
    sys.exit(main())
