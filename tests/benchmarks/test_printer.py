from io import StringIO

import pytest
from rich.console import Console

from benchmarks.printer import duration, table
from warpfold.kernels.bench.record import Record


def text(*records: Record) -> str:
    console = Console(width=300, file=StringIO())
    with console.capture() as captured:
        console.print(table(records, "Title"))
    return captured.get()


@pytest.mark.parametrize(
    ("ms", "written"),
    [
        (None, "–"),
        (0.003712, "3.712 µs"),
        (0.0927, "92.70 µs"),
        (0.9274, "927.4 µs"),
        (0.99996, "1.000 ms"),
        (12.345, "12.35 ms"),
        (1204.0, "1.204 s"),
        (3_600_000.0, "3600.0 s"),
    ],
)
def test_durations_have_four_digits_and_a_unit(ms: float | None, written: str) -> None:
    assert duration(ms) == written


def test_a_line_shows_figures_and_flags() -> None:
    record = Record(
        "single_pass", "sum", "float32", 1 << 28, "cold", "measured",
        bytes=1 << 30, samples=25, kernel_ms=0.2310, min_ms=0.2300, p95_ms=0.2350, rse=0.0012,
        ceiling_gbps=4650.0, peak_gbps=4916.7, launches=1, flags=("throttled",),
    )  # fmt: skip
    shown = text(record)
    for part in ("single_pass", "268,435,456", "231.0 µs", "0.12 %", "4,648.2", "100.0", "94.5", "throttled"):
        assert part in shown


def test_a_skipped_case_shows_why() -> None:
    shown = text(Record("torch", "sum", "float32", 10, "hot", "skipped", "PyTorch is not installed"))
    assert "skipped: PyTorch is not installed" in shown
