"""Tables in Markdown from stored points: `python -m benchmarks.markdown benchmarks/results/strategies-….json sizes`.

A line a case, a column a strategy. `--figure` picks what a cell shows: time on the device, back to back, by replay, or
the share of the measured read ceiling. Suspect figures are left out.
"""

import argparse
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from types import MappingProxyType
from typing import Any

from kernels.bench import Record
from kernels.bench.printer import duration

FIGURES: Mapping[str, Callable[[Record], str]] = MappingProxyType(
    {
        "device": lambda record: duration(record.kernel_ms),
        "issue": lambda record: duration(record.issue_ms),
        "replay": lambda record: duration(record.replay_ms),
        "host": lambda record: duration(record.host_ms),
        "ceiling": lambda record: f"{record.percent_of_ceiling or 0:.1f}",
    }
)


def read(path: Path) -> dict[str, list[Record]]:
    """The points of a file, by suite."""
    names = {field.name for field in fields(Record)}
    suites: dict[str, list[Record]] = {}
    for point in json.loads(path.read_text())["points"]:
        facts: dict[str, Any] = {name: point[name] for name in names & set(point)}
        for name in ("throttle", "flags"):
            facts[name] = tuple(facts[name])
        suites.setdefault(point["suite"], []).append(Record(**facts))
    return suites


def table(records: Sequence[Record], strategies: Sequence[str], show: Callable[[Record], str]) -> str:
    """A Markdown table; columns that say the same in every line are left out."""
    cases = list(dict.fromkeys((r.op, r.dtype, f"{r.n:,}", r.cache) for r in records))
    varying = [i for i in range(4) if len({case[i] for case in cases}) > 1] or [2]
    heads = [("op", "dtype", "n", "cache")[i] for i in varying]
    found = {(r.strategy, (r.op, r.dtype, f"{r.n:,}", r.cache)): r for r in records}
    lines = [
        "| " + " | ".join([*heads, *(f"`{name}`" for name in strategies)]) + " |",
        "|" + "---|" * len(heads) + "---:|" * len(strategies),
    ]
    for case in cases:
        cells = [_cell(found.get((name, case)), show) for name in strategies]
        lines.append("| " + " | ".join([*(case[i] for i in varying), *cells]) + " |")
    return "\n".join(lines)


def _cell(record: Record | None, show: Callable[[Record], str]) -> str:
    if record is None or record.outcome == "skipped":
        return "–"
    return show(record) if record.counts else record.outcome if record.kernel_ms is None else "suspect"


def main() -> int:
    """Print one table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("points", type=Path)
    parser.add_argument("suite")
    parser.add_argument("--figure", choices=list(FIGURES), default="device")
    parser.add_argument("--strategies", nargs="+", help="which and in what order; by default all")
    parser.add_argument("--ops", nargs="+")
    parser.add_argument("--cache", choices=("cold", "hot"), default="cold")
    arguments = parser.parse_args()
    records = [record for record in read(arguments.points)[arguments.suite] if record.cache == arguments.cache]
    if arguments.ops:
        records = [record for record in records if record.op in arguments.ops]
    strategies = arguments.strategies or list(dict.fromkeys(record.strategy for record in records))
    print(table(records, strategies, FIGURES[arguments.figure]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
