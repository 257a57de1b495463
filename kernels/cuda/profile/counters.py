"""Counters of Nsight Compute while a kernel runs, where it is installed and permitted."""

import csv
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from warpfold.kernels.cuda.profile.records import Counters
from warpfold.kernels.errors import Unavailable

_WITHIN_S = 180.0

# By the Nsight Compute documentation, "Metrics Reference": the achieved occupancy is the warps active of the most a
# multiprocessor holds; warp execution efficiency the threads that take part in an instruction, of 32.
_DURATION = "gpu__time_duration.sum"
_DRAM = "dram__throughput.avg.pct_of_peak_sustained_elapsed"
_THREADS = "smsp__thread_inst_executed_per_inst_executed.ratio"
_WARPS = "sm__warps_active.avg.pct_of_peak_sustained_active"
METRICS = (_DURATION, _DRAM, _THREADS, _WARPS)

_SCALES: Mapping[str, float] = MappingProxyType({_DURATION: 1e-3, _DRAM: 1.0, _THREADS: 100 / 32, _WARPS: 1.0})
"""From ncu's base units (ns, %, threads) to ours (µs, %)."""


def count(index: int, strategy: str, op: str, dtype: str, n: int) -> tuple[Counters, ...]:
    """The counters of every kernel of one run, in their order. Raises Unavailable as `profiled` does."""
    return tuple(_counters(row) for row in profiled(index, strategy, op, dtype, n, metrics=METRICS))


def profiled(
    index: int, strategy: str, op: str, dtype: str, n: int, *, metrics: Sequence[str]
) -> Sequence[Mapping[str, str]]:
    """What ncu says of every kernel of one run on GPU `index`, in their order, with cold caches and clocks as they are:
    `metrics` and the kernel's name by column, in ncu's base units.

    Raises Unavailable saying why there is nothing: no ncu, no right to read counters, or it took too long.
    """
    ncu = shutil.which("ncu")
    if ncu is None:
        raise Unavailable("there is no ncu (Nsight Compute) on PATH; it comes with the CUDA toolkit")
    command = [ncu, "--csv", "--page", "raw", "--print-units", "base", "--clock-control", "none"]
    command += ["--cache-control", "all", "--profile-from-start", "off", "--metrics", ",".join(metrics)]
    command += [sys.executable, "-m", "warpfold.kernels.cuda.profile.counted", str(index), strategy, op, dtype, str(n)]
    root = Path(__file__).resolve().parents[3]  # where `kernels` is found
    try:
        done = subprocess.run(command, cwd=root, capture_output=True, text=True, timeout=_WITHIN_S, check=False)
    except subprocess.TimeoutExpired:
        raise Unavailable(f"ncu did not end within {_WITHIN_S:g} s") from None
    if done.returncode:
        lines = (done.stdout + done.stderr).strip().splitlines()
        errors = [line for line in lines if "==ERROR==" in line] or lines[-1:] or ["nothing"]
        raise Unavailable(f"ncu ended with code {done.returncode} and says: {errors[0].strip()[:300]}")
    return parse(done.stdout)


def parse(output: str) -> Sequence[Mapping[str, str]]:
    """The kernels in what ncu prints as CSV: a head, a line of units, a line a kernel. Raises Unavailable if there is
    no kernel."""
    rows = list(csv.DictReader(line for line in output.splitlines() if line.startswith('"')))[1:]
    if not rows:
        raise Unavailable("ncu saw no kernel")
    return rows


def _counters(row: Mapping[str, str]) -> Counters:
    duration, dram, threads, warps = (_figure(row, name) for name in METRICS)
    return Counters(duration, dram, threads, warps)


def _figure(row: Mapping[str, str], metric: str) -> float | None:
    try:
        return float(row[metric].replace(",", "")) * _SCALES[metric]
    except (KeyError, ValueError):  # a chip that has no such counter
        return None
