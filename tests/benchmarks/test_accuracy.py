"""The script that measures accuracy studies."""

import json
import subprocess
import sys
from pathlib import Path


def test_a_point_is_written_for_every_method(tmp_path: Path) -> None:
    out = tmp_path / "accuracy.json"
    command = ["-m", "benchmarks.accuracy", "--n", "2000", "--dtypes", "float32", "--out", str(out)]
    done = subprocess.run([sys.executable, *command], capture_output=True, text=True, check=True)
    stored = json.loads(out.read_text())
    measured = {point["case"]["method"]: point["measured"] for point in stored["points"]}
    assert {"sequential", "kahan", "numpy", "exact"} <= set(measured)
    assert all(figures["elapsed_ms"] > 0 for figures in measured.values())
    assert stored["peak_bytes"] > 0
    assert "peak memory" in done.stdout
