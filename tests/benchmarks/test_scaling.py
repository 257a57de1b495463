"""The tables of scaling studies and profiles, and the whole way on a CPU."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from benchmarks.profiles import COLUMNS
from benchmarks.profiles import table as profile_table
from benchmarks.scaling import array_table, message_table

POINT: dict[str, Any] = {
    "scaling": "strong",
    "method": "exact",
    "mode": "one_process",
    "algorithm": "ring",
    "ranks": 2,
    "n": 1_000_000_000,
    "outcome": "measured",
    "reason": None,
    "baseline_ms": 0.892,
    "local_ms": 0.4506,
    "communication_ms": 0.008944,
    "total_ms": 0.4602,
    "speedup": 1.938,
    "efficiency": 0.969,
    "same_bits": True,
    "suspect": None,
}
MESSAGE: dict[str, Any] = {
    "mode": "process_per_rank",
    "algorithm": "tree",
    "ranks": 2,
    "bytes": 4096,
    "outcome": "measured",
    "time_us": 7.5,
    "busbw_gbps": 0.543,
    "correct": True,
}


def test_an_array_is_a_line_and_a_single_rank_none() -> None:
    *_, line = array_table([{**POINT, "ranks": 1, "mode": None, "algorithm": None}, POINT]).splitlines()
    assert "| 1,000,000,000 | 892.0 µs | 450.6 µs | 8.944 µs | 460.2 µs | 1.938× | 0.9690 | yes |" in line
    assert len(array_table([POINT]).splitlines()) == 3


def test_suspect_figures_and_what_was_not_measured_say_so() -> None:
    assert "suspect (47.520×)" in array_table([{**POINT, "speedup": 47.52, "suspect": "too fast"}])
    assert "skipped: no room" in array_table([{**POINT, "outcome": "skipped", "reason": "no room"}])


def test_a_message_has_its_time_and_the_bandwidth_of_the_bus() -> None:
    text = message_table([MESSAGE, {**MESSAGE, "bytes": 8, "correct": False}])
    assert "| 4,096 | 7.5 µs, 0.543 GB/s |" in text
    assert "WRONG" in text


def test_a_kernel_is_a_line() -> None:
    kernel = {
        "name": "two_pass<Sum<float32>>",
        "registers": 15,
        "static_shared": 128,
        "dynamic_shared": 0,
        "threads": 256,
        "blocks": 1024,
        "blocks_per_multiprocessor": 8,
        "occupancy_percent": 100.0,
        "waves": 0.97,
        "counters": None,
    }
    point = {"strategy": "two_pass", "n": 1000, "outcome": "measured", "reason": None, "kernels": [kernel]}
    head, _, line = profile_table([point]).splitlines()
    assert head.count("|") == line.count("|") == len(COLUMNS) + 1
    assert "| `two_pass` | 15 | 128 | 256 | 1,024 | 8 | 100 % | 0.970 | – | – | – | – |" in line


def test_a_quick_study_runs_anywhere_and_its_file_prints_the_same_tables(tmp_path: Path) -> None:
    out = tmp_path / "scaling.json"
    script = [sys.executable, "-m", "benchmarks.scaling"]
    first = subprocess.run([*script, "--quick", "--out", str(out)], capture_output=True, text=True, check=True)
    points = json.loads(out.read_text())["points"]
    assert {point["outcome"] for point in points} <= {"measured", "skipped"}
    again = subprocess.run([*script, "--from", str(out)], capture_output=True, text=True, check=True)
    assert again.stdout == first.stdout
