"""Measures how the exact sum scales over the GPUs of this machine, or over its cores: `python -m benchmarks.scaling`.

The whole study of `docs/scaling.md`: strong scaling over the sizes of the course report, weak scaling at 2³⁰ elements a
GPU (2²⁴ a core), one process and one process a rank, ring and tree, messages from 8 B to 1 GiB. `--out` writes every
point as JSON; `--from` prints the tables of such a file instead of measuring.
"""

import argparse
import json
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks.printer import duration
from benchmarks.provenance import of_script
from warpfold.kernels.backend import GANG
from warpfold.kernels.driver import Backend
from warpfold.kernels.errors import Unavailable
from warpfold.kernels.open import open_backend
from warpfold.kernels.scaling.axes import Algorithm
from warpfold.kernels.scaling.placement import Placement, placement_on
from warpfold.kernels.scaling.records import Libraries
from warpfold.kernels.scaling.run import run
from warpfold.kernels.scaling.study import Study

REPORT_SIZES = (1_000_000, 10_000_000, 50_000_000, 100_000_000, 500_000_000, 1_000_000_000)
MESSAGES = tuple(8 << shift for shift in range(0, 28, 3))
RANKS = (1, 2, 4, 8)
_QUICK_CACHE_BYTES = 8 << 20
Points = Sequence[dict[str, Any]]


def study_for(placement: Placement, algorithms: tuple[Algorithm, ...], *, quick: bool) -> Study:
    """The spec of the whole study on GPUs; on a CPU, with arrays and messages that take seconds instead of minutes."""
    ranks = tuple(ranks for ranks in RANKS if ranks <= max(2, placement.available))
    if quick:
        return Study((100_000,), (1 << 16,), (8, 1 << 16), ranks, samples=5, time_limit_s=0.5)
    if placement.note is None:
        return Study(REPORT_SIZES, (1 << 30,), MESSAGES, ranks, algorithms=algorithms, time_limit_s=3.0)
    return Study(REPORT_SIZES[:4], (1 << 24,), MESSAGES[:8], ranks, algorithms=algorithms, time_limit_s=3.0)


def open_widest(*, quick: bool) -> Backend:
    """All GPUs, or the CPU of a machine without GPUs. A quick study displaces a small cache, whatever the CPU has."""
    try:
        return open_backend(GANG)
    except Unavailable:
        return open_backend("cpu", cpu_cache_bytes=_QUICK_CACHE_BYTES if quick else None)


def measure(placement: Placement, study: Study) -> dict[str, Any]:
    """Measure every point, in the form in which it is written."""
    began = time.monotonic()
    points: list[dict[str, Any]] = []
    libraries: dict[str, str] = {}
    for record in run(placement, study):
        if isinstance(record, Libraries):
            libraries = dict(record.versions)
            continue
        points.append({"seconds": round(time.monotonic() - began, 2), **asdict(record)})
        print(f"\r\x1b[K{len(points)}/{len(study)}", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    return {
        **of_script("benchmarks.scaling"),
        "devices": [asdict(device) for device in placement.devices],
        "libraries": libraries,
        "note": placement.note,
        "points": points,
    }


def array_table(points: Points) -> str:
    """A table with a line for each array on several ranks: the parts of its time, and its speed-up over one rank."""
    lines = [
        "| scaling | method | ranks | processes | algorithm | n | one rank | local | all-reduce | total | speed-up | "
        "efficiency | bits of one |",
        "|---|---|---:|---|---|---:|---:|---:|---:|---:|---:|---:|---|",
    ]
    for point in points:
        if "n" not in point or point["ranks"] == 1:
            continue
        case = (point["scaling"], point["method"], str(point["ranks"]), *_how(point), f"{point['n']:,}")
        lines.append("| " + " | ".join((*case, *_array_figures(point))) + " |")
    return "\n".join(lines)


def _array_figures(point: dict[str, Any]) -> tuple[str, ...]:
    if point["outcome"] != "measured":
        return (f"{point['outcome']}: {point['reason']}", *[""] * 6)
    times = (point[name] for name in ("baseline_ms", "local_ms", "communication_ms", "total_ms"))
    speedup = f"{point['speedup']:.3f}×" if point["speedup"] is not None else "–"
    efficiency = f"{point['efficiency']:.4f}" if point["efficiency"] is not None else "–"
    if point["suspect"]:
        speedup = f"suspect ({speedup})"
    same = {True: "yes", False: "no", None: "–"}[point["same_bits"]]
    return (*(duration(ms) if ms is not None else "–" for ms in times), speedup, efficiency, same)


def message_table(points: Points) -> str:
    """A table with a line for each message size; the columns are bandwidths of the bus, in GB/s, and times."""
    by_group = {(point["bytes"], point["ranks"], *_how(point)): point for point in points if "bytes" in point}
    groups = list(dict.fromkeys(key[1:] for key in by_group))
    heads = [f"{ranks} ranks, {processes}, {algorithm}" for ranks, processes, algorithm in groups]
    lines = ["| bytes | " + " | ".join(heads) + " |", "|---:|" + "---:|" * len(groups)]
    for nbytes in dict.fromkeys(key[0] for key in by_group):
        cells = [_message_cell(by_group.get((nbytes, *group))) for group in groups]
        lines.append(f"| {nbytes:,} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _message_cell(point: dict[str, Any] | None) -> str:
    if point is None:
        return "–"
    if point["outcome"] != "measured":
        return str(point["outcome"])
    right = "" if point["correct"] else " WRONG"
    return f"{point['time_us']:,.1f} µs, {point['busbw_gbps']:.3g} GB/s{right}"


def _how(point: dict[str, Any]) -> tuple[str, str]:
    return {"one_process": "one", "process_per_rank": "one a rank"}[point["mode"]], str(point["algorithm"])


def main() -> int:
    """Measure or read the points, and print them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, help="write every point here, as JSON")
    parser.add_argument("--from", type=Path, dest="source", help="print the tables of this file")
    parser.add_argument("--algorithms", nargs="+", choices=list(Algorithm), default=["ring", "tree"], help="of NCCL")
    parser.add_argument("--quick", action="store_true", help="small arrays, to see that it works")
    arguments = parser.parse_args()
    if arguments.source is not None:
        result = json.loads(arguments.source.read_text())
    else:
        placement = placement_on(open_widest(quick=arguments.quick))
        study = study_for(placement, tuple(map(Algorithm, arguments.algorithms)), quick=arguments.quick)
        result = measure(placement, study)
    if arguments.out is not None:
        arguments.out.write_text(json.dumps(result, indent=1, ensure_ascii=False) + "\n")
    print(f"{' + '.join(device['name'] for device in result['devices'])}, {result['when']}, {result['libraries']}\n")
    print(array_table(result["points"]))
    print()
    print(message_table(result["points"]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
