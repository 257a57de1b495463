"""Makes Markdown tables of stored points: `python -m benchmarks.markdown benchmarks/results/strategies-….json sizes`.

A table has a line for each case and a column for each strategy. `--figure` picks what a cell shows: the time on the
device, back to back, by replay, or the share of the measured read ceiling. Suspect figures are left out.

`--fill docs/benchmarks.md` writes the tables of a page anew, each after a line `<!-- table SUITE [option …] -->` that
says which.
"""

import argparse
import json
import re
import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from types import MappingProxyType
from typing import Any

from benchmarks.printer import duration
from warpfold.kernels.bench.record import Record

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
    """A Markdown table without the columns that have the same value in every line."""
    cases = list(dict.fromkeys((r.op, r.dtype, f"{r.n:,}", r.cache) for r in records))
    varying = [i for i in range(4) if len({case[i] for case in cases}) > 1] or [2]
    heads = [("op", "dtype", "n", "cache")[i] for i in varying]
    by_case = {(r.strategy, (r.op, r.dtype, f"{r.n:,}", r.cache)): r for r in records}
    lines = [
        "| " + " | ".join([*heads, *(f"`{name}`" for name in strategies)]) + " |",
        "|" + "---|" * len(heads) + "---:|" * len(strategies),
    ]
    for case in cases:
        cells = [_cell(by_case.get((name, case)), show) for name in strategies]
        lines.append("| " + " | ".join([*(case[i] for i in varying), *cells]) + " |")
    return "\n".join(lines)


def _cell(record: Record | None, show: Callable[[Record], str]) -> str:
    if record is None or record.outcome == "skipped":
        return "–"
    return show(record) if record.counts else record.outcome if record.kernel_ms is None else "suspect"


def fill(page: str, suites: Mapping[str, Sequence[Record]]) -> str:
    """`page` with a new table after each line `<!-- table SUITE [option …] -->`."""

    def anew(match: re.Match[str]) -> str:
        return f"{match[1]}{chosen(suites, _options().parse_args(shlex.split(match[2])))}\n"

    return re.sub(r"(<!-- table (.+) -->\n)(?:\|.*\n)*", anew, page)


def chosen(suites: Mapping[str, Sequence[Record]], options: argparse.Namespace) -> str:
    """The table that the options ask for."""
    records = [record for record in suites[options.suite] if record.cache == options.cache]
    if options.ops:
        records = [record for record in records if record.op in options.ops]
    strategies = options.strategies or list(dict.fromkeys(record.strategy for record in records))
    return table(records, strategies, FIGURES[options.figure])


def _options(**more: Any) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(**more)
    parser.add_argument("suite", nargs="?")
    parser.add_argument("--figure", choices=list(FIGURES), default="device")
    parser.add_argument("--strategies", nargs="+", help="which and in what order; by default all")
    parser.add_argument("--ops", nargs="+")
    parser.add_argument("--cache", choices=("cold", "hot"), default="cold")
    return parser


def main() -> int:
    """Print one table, or fill a page."""
    points = argparse.ArgumentParser(add_help=False)
    points.add_argument("points", type=Path)
    points.add_argument("--fill", type=Path, metavar="PAGE", help="write the tables of this page anew")
    parser = _options(parents=[points], description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments = parser.parse_args()
    suites = read(arguments.points)
    if arguments.fill:
        page = arguments.fill.read_text(encoding="utf-8")
        arguments.fill.write_text(fill(page, suites), encoding="utf-8")
    elif arguments.suite:
        print(chosen(suites, arguments))
    else:
        parser.error("name a suite, or a page to --fill")
    return 0


if __name__ == "__main__":
    sys.exit(main())
