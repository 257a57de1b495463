"""Measures jobs on all GPUs of this machine beside the same jobs on one: `python -m benchmarks.gang`.

The jobs reduce along axes, by segments and by key, arrays and tables that are generated or lie in files in the page
cache. Each slot is opened as its worker opens it. `first` is the first job of the gang, which opens the GPUs and loads
kernels; `gang` and `one GPU` are the medians of the jobs that follow, by turns, in milliseconds of `timings.total_ms`.
Both results are compared bit by bit. `--out` writes the rows as JSON.
"""

import argparse
import json
import statistics
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np

from benchmarks.provenance import of_script
from warpfold.app.jobs.attempt import Lease
from warpfold.contract.folders import ArtefactFolder, Folders
from warpfold.kernels.backend import GANG
from warpfold.kernels.errors import Unavailable
from warpfold.worker.execute import Kernels

ROUNDS = 5
ONE = "cuda:0"
TIMES = ("timings", "provenance", "device", "backend", "kernel")
"""The fields in which results may differ."""

Spec = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Row:
    """Milliseconds of one kind of job."""

    job: str
    first: float
    gang: float
    alone: float
    differing: tuple[str, ...]


def specs(folder: Path, elements: int) -> Iterator[tuple[str, Spec]]:
    """The jobs, over `elements` that are generated, and an eighth of these in files of `folder`."""
    wide, stored = elements >> 12, elements // 8
    made = {"type": "generate", "distribution": "normal", "dtype": "float32", "seed": 3}
    along: Spec = {"kind": "reduce", "op": "sum", "source": {**made, "n": elements, "shape": [1 << 12, wide]}}
    yield "rows, generated", {**along, "axis": 1}
    yield "columns, generated", {**along, "source": {**along["source"], "shape": [wide, 1 << 12]}, "axis": 0}
    yield "segments, generated", {**along, "source": {**made, "n": elements}, "segments": {"length": wide}}
    yield "variances of rows, generated", {**along, "op": "var", "axis": 1}
    some = {"type": "generate", "n": elements // 8}
    for groups in (2, 1 << 16):
        keys = {**some, "distribution": "uniform", "parameters": {"high": groups - 1}, "dtype": "uint16", "seed": 4}
        sums = [{"op": op, "source": {**made, **some}} for op in ("sum", "max")]
        yield f"{groups:,} groups, generated", {"kind": "groupby", "by": [{"source": keys}], "aggregations": sums}
    random = np.random.default_rng(5)
    np.save(folder / "rows.npy", random.standard_normal((1 << 12, stored >> 12), dtype=np.float32))
    array: Spec = {"type": "path", "path": "rows.npy"}
    yield "rows, npy", {"kind": "reduce", "op": "sum", "source": array, "axis": 1}
    yield "columns, npy", {"kind": "reduce", "op": "sum", "source": array, "axis": 0}
    write_table(folder / "rows.parquet", stored // 16)
    yield (
        "1,000 groups, Parquet",
        {
            **{"kind": "groupby", "source": {"type": "table", "path": "rows.parquet"}, "by": ["key"]},
            "aggregations": [{"op": "sum", "column": "x"}, {"op": "mean", "column": "x"}],
        },
    )


def write_table(path: Path, rows: int) -> None:
    import pyarrow as pa
    from pyarrow import parquet

    random = np.random.default_rng(6)
    columns = {"key": random.integers(0, 1000, rows).astype(np.int32), "x": random.standard_normal(rows)}
    parquet.write_table(pa.table(columns), path)


def run(kernels: Kernels, slot: str, spec: Spec) -> Mapping[str, Any]:
    """The result of a job on a slot."""
    text = json.dumps({**spec, "backend": slot.partition(":")[0]})
    lease = Lease(job_id=uuid4(), attempt=1, token=uuid4(), timeout_s=600.0, queued_ms=0.0, spec=text)
    return kernels.run(lease, lambda news: None).result


def differing(first: Mapping[str, Any], second: Mapping[str, Any]) -> list[str]:
    """The fields in which two results differ, although they must not. JSON has the shortest digits that name a float's
    bits."""
    return [name for name in first if name not in TIMES and _bits(first[name]) != _bits(second[name])]


def _bits(value: Any) -> str:
    if isinstance(value, Mapping) and "parts" in value:  # the stored part of a result
        return str([part["sha256"] for part in value["parts"]])
    return json.dumps(value, sort_keys=True)


def measure(folders: Folders, jobs: Sequence[tuple[str, Spec]], rounds: int) -> Iterator[Row]:
    slots = {slot: Kernels(slot, f"here:{slot}", folders) for slot in (GANG, ONE)}
    for name, spec in jobs:
        first = run(slots[GANG], GANG, spec)
        wrong = differing(first, run(slots[ONE], ONE, spec))
        times: dict[str, list[float]] = {slot: [] for slot in slots}
        for _ in range(rounds):
            for slot, kernels in slots.items():
                result = run(kernels, slot, spec)
                wrong = wrong or differing(first, result)
                times[slot].append(result["timings"]["total_ms"])
        gang, alone = (statistics.median(times[slot]) for slot in (GANG, ONE))
        yield Row(name, first["timings"]["total_ms"], gang, alone, tuple(wrong))


def main() -> int:
    """Measure and print the rows; 1 if there are no GPUs, or if any bit differs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--elements", type=int, default=1 << 31, help="elements of the generated arrays")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="jobs of each slot")
    parser.add_argument("--out", type=Path, help="also write the rows here, as JSON")
    arguments = parser.parse_args()
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name).resolve()
        folders = Folders((folder,), folder, artefacts=ArtefactFolder(folder / "artefacts", 1 << 30, 0))
        print("| job | first | gang | one GPU | times as fast | same bits |\n|---|---:|---:|---:|---:|---|")
        try:
            for row in measure(folders, list(specs(folder, arguments.elements)), arguments.rounds):
                rows.append(row)
                figures = f"{row.first:.1f} | {row.gang:.1f} | {row.alone:.1f} | {row.alone / row.gang:.2f}"
                print(
                    f"| {row.job} | {figures} | {'NO: ' + ', '.join(row.differing) if row.differing else 'yes'} |",
                    flush=True,
                )
        except Unavailable as error:
            print(error, file=sys.stderr)
            return 1
    if arguments.out is not None:
        written = {**of_script("benchmarks.gang"), "rows": [asdict(row) for row in rows]}
        arguments.out.write_text(json.dumps(written, indent=1) + "\n")
    return 0 if not any(row.differing for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
