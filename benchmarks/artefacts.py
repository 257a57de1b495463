"""Measures how fast very many values are stored: `python -m benchmarks.artefacts`.

In one run, in turn and several times: `numpy.save` of the values, the same with a flush to the disk, the writer of
stored results (which flushes and hashes), and whole jobs of a CPU slot's child along both axes. Ratios are of medians.
"""

import argparse
import json
import os
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from warpfold.app.jobs.attempt import Lease
from warpfold.contract.folders import ArtefactFolder, Folders
from warpfold.kernels.machine.cores import usable_cores
from warpfold.worker.artefacts import ArtefactWriter
from warpfold.worker.execute import Kernels
from warpfold.worker.kinds.attempt import Attempt

ROUNDS = 3
DEPTH = 8
_PIECE = 1 << 17


def _saved(values: NDArray[Any], path: Path, *, flush: bool) -> None:
    with path.open("wb") as file:
        np.save(file, values)
        if flush:
            file.flush()
            os.fsync(file.fileno())


def _written(values: NDArray[Any], folders: Folders) -> None:
    unused: Any = None
    attempt = Attempt(
        lease=Lease(uuid4(), 1, uuid4(), "{}", 60.0, 0.0),
        kind="reduce",
        backend=unused,
        device=unused,
        provenance=unused,
        folders=folders,
        tell=lambda news: None,
        started=0.0,
        prepared_ms=0.0,
    )
    with ArtefactWriter(attempt, values.shape, "float64", each=1, field="axis") as writer:
        for start in range(0, values.size, _PIECE):
            part = values[start : start + _PIECE]
            writer.append(part, np.ones(part.size, np.int64))
        writer.finish()


def _reduced(child: Kernels, path: str, axis: int) -> dict[str, Any]:
    spec = {"kind": "reduce", "axis": axis, "source": {"type": "path", "path": path}}
    result: Any = child.run(Lease(uuid4(), 1, uuid4(), json.dumps(spec), 60.0, 0.0), lambda news: None).result
    return dict(result)


def main() -> None:
    parser = argparse.ArgumentParser(description="How fast very many values are stored.")
    parser.add_argument("--values", type=int, default=10_000_000)
    parser.add_argument("--folder", type=Path, help="where the disk is (a temporary folder)")
    chosen = parser.parse_args()
    root = Path(tempfile.mkdtemp(dir=chosen.folder)).resolve()
    try:
        folders = Folders((root,), root, artefacts=ArtefactFolder(root / "artefacts", 1 << 50, 0))
        values = np.random.default_rng(1).normal(size=chosen.values)
        matrix = np.random.default_rng(2).normal(size=(chosen.values, DEPTH))
        np.save(root / "rows.npy", matrix)
        np.save(root / "columns.npy", matrix.reshape(DEPTH, -1))
        child = Kernels("cpu", "here:cpu", folders, cpu_cache_bytes=8 << 20)
        contenders: dict[str, Callable[[], object]] = {
            "numpy.save": lambda: _saved(values, root / "saved.npy", flush=False),
            "numpy.save, flushed": lambda: _saved(values, root / "saved.npy", flush=True),
            "stored: flushed and hashed": lambda: _written(values, folders),
            f"job, axis 1 of n × {DEPTH}": lambda: _reduced(child, "rows.npy", 1),
            f"job, axis 0 of {DEPTH} × n": lambda: _reduced(child, "columns.npy", 0),
        }
        times: dict[str, list[float]] = {name: [] for name in contenders}
        for warm in (True, *[False] * ROUNDS):
            for name, run in contenders.items():
                began = time.perf_counter()
                run()
                if not warm:
                    times[name].append(time.perf_counter() - began)
                shutil.rmtree(root / "artefacts", ignore_errors=True)
    finally:
        shutil.rmtree(root)
    plain = statistics.median(times["numpy.save"])
    title = f"{chosen.values:,} float64 values; {usable_cores()} cores, load {os.getloadavg()[0]:.1f}"
    table = Table("", "seconds", "MB/s of values", "÷ numpy.save", title=title)
    for name, taken in times.items():
        median = statistics.median(taken)
        table.add_row(name, f"{median:.3f}", f"{values.nbytes / median / 1e6:,.0f}", f"{median / plain:.2f}")
    Console(width=120).print(table)


if __name__ == "__main__":
    main()
