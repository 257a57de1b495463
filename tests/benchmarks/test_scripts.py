"""The scripts behind `make bench`."""

import json
import subprocess
import sys
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from benchmarks import markdown
from benchmarks.__main__ import SCRIPTS, summary
from benchmarks.strategies import pivot, write
from benchmarks.suites import CPU_SUITES, GPU_SUITES, SUITES, Suite
from warpfold.kernels.bench.record import Record
from warpfold.kernels.catalog import strategies
from warpfold.kernels.cuda.gpu.device import visible_devices


def record(strategy: str, ms: float | None, **more: object) -> Record:
    outcome = "measured" if ms is not None else "skipped"
    return Record(strategy, "sum", "float32", 1000, "cold", outcome, bytes=4000, kernel_ms=ms, **more)  # type: ignore[arg-type]


def shown(*records: Record) -> str:
    console = Console(width=200, file=StringIO())
    with console.capture() as captured:
        console.print(pivot(Suite("s", "Title", "cub", ()), records))
    return captured.get()


def test_every_script_says_in_a_line_what_it_measures() -> None:
    assert all(f"python -m benchmarks.{name}" in summary(name) for name in SCRIPTS)


@pytest.mark.skipif(bool(visible_devices()), reason="there is a GPU")
@pytest.mark.parametrize("name", ["exact_cuda", "profiles"])
def test_a_script_without_its_gpu_says_so_and_fails_no_other(name: str) -> None:
    done = subprocess.run([sys.executable, "-m", "benchmarks", name], capture_output=True, text=True, check=False)
    assert done.returncode == 0
    assert done.stderr.startswith(("CuPy is not installed", "no CUDA device can be used"))


def test_an_unknown_script_is_an_error() -> None:
    done = subprocess.run([sys.executable, "-m", "benchmarks", "nope"], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "there is no script 'nope'" in done.stderr


def test_a_table_has_the_median_and_the_multiple_of_the_baselines_speed() -> None:
    text = shown(record("cub", 0.010), record("single_pass", 0.008))
    assert "10.00 µs 1.00×" in text
    assert "8.000 µs 1.25×" in text


def test_suspect_figures_enter_no_ratio() -> None:
    assert "(8.000 µs)" in shown(record("cub", 0.010), record("single_pass", 0.008, flags=("suspect",)))
    assert "×" not in shown(record("cub", 0.010, flags=("suspect",)), record("single_pass", 0.008)).replace("× cub", "")


def test_what_was_not_measured_says_so() -> None:
    assert "skipped" in shown(record("cub", 0.010), record("torch", None))


def test_points_are_written_with_where_they_come_from(tmp_path: Path) -> None:
    path = tmp_path / "new" / "points.json"
    write(path, {"date": "today"}, {"a": [record("cub", 0.010)], "b": [record("torch", None)]})
    stored = json.loads(path.read_text())
    assert stored["provenance"] == {"date": "today"}
    assert [(point["suite"], point["strategy"]) for point in stored["points"]] == [("a", "cub"), ("b", "torch")]


@pytest.mark.parametrize("suite", SUITES.values(), ids=lambda suite: suite.name)
def test_every_suite_names_strategies_that_there_are(suite: Suite) -> None:
    known = {backend: {row.name for row in strategies() if row.backend == backend} for backend in ("cpu", "cuda")}
    for axes in suite.axes:
        assert set(axes.strategies) <= known["cpu" if suite in CPU_SUITES else "cuda"]
        assert suite.baseline in axes.strategies
    for axes in suite.on_host:
        assert set(axes.strategies) <= known["cpu"]
    assert suite in (*GPU_SUITES, *CPU_SUITES)


def test_the_reports_table_has_its_kernel_beside_its_peers_on_gpu_and_cpu() -> None:
    (report,) = [suite for suite in GPU_SUITES if suite.name == "report"]
    (gpu,), (cpu,) = report.axes, report.on_host
    assert {"two_pass", "thrust", "cub", "single_pass", "exact", "numpy"} == {*gpu.strategies, *cpu.strategies}
    assert (gpu.sizes, gpu.dtypes, gpu.caches) == (cpu.sizes, cpu.dtypes, cpu.caches)


def test_stored_points_come_back_as_markdown(tmp_path: Path) -> None:
    path = tmp_path / "points.json"
    points = [record("cub", 0.010), record("single_pass", 0.008, flags=("suspect",)), record("torch", None)]
    write(path, {}, {"sizes": points})
    sizes = markdown.read(path)["sizes"]
    assert sizes == points
    lines = markdown.table(sizes, ("cub", "single_pass", "torch", "cupy"), markdown.FIGURES["device"]).splitlines()
    assert lines[0] == "| n | `cub` | `single_pass` | `torch` | `cupy` |"
    assert lines[2] == "| 1,000 | 10.00 µs | suspect | – | – |"


def test_the_tables_of_a_page_are_made_anew_and_the_rest_stays(tmp_path: Path) -> None:
    path = tmp_path / "points.json"
    write(path, {}, {"sizes": [record("cub", 0.010), record("torch", 0.020)]})
    page = "Before.\n\n<!-- table sizes --strategies torch cub -->\n| old |\n|---|\n\nBetween.\n\n| other |\n"
    assert markdown.fill(page, markdown.read(path)) == (
        "Before.\n\n<!-- table sizes --strategies torch cub -->\n"
        "| n | `torch` | `cub` |\n|---|---:|---:|\n| 1,000 | 20.00 µs | 10.00 µs |\n"
        "\nBetween.\n\n| other |\n"
    )
