"""Prints records as a table for people."""

from collections.abc import Iterable

from rich.table import Table
from rich.text import Text

from warpfold.kernels.bench.flags import Flag
from warpfold.kernels.bench.record import Record
from warpfold.kernels.studies.outcome import Outcome

_COLUMNS = (
    "strategy", "op", "dtype", "n", "cache", "median", "min", "p95", "rse", "samples",
    "GB/s", "% ceiling", "% peak", "launches", "host", "back to back", "replay", "flags",
)  # fmt: skip
_NAMES = 5


def table(records: Iterable[Record], title: str | None = None) -> Table:
    """One line a row; a case that was skipped or failed shows why in place of its figures."""
    drawn = Table(*_COLUMNS, title=title, title_justify="left")
    for index, column in enumerate(drawn.columns):
        column.justify = "left" if index < 3 or index == 4 else "right"
        column.no_wrap = True
    for record in records:
        drawn.add_row(*_names(record), *_figures(record))
    return drawn


def _names(record: Record) -> tuple[str, ...]:
    return (record.strategy, record.op, record.dtype, f"{record.n:,}", record.cache)


def _figures(record: Record) -> tuple[str | Text, ...]:
    if record.outcome != Outcome.MEASURED:
        reason = Text(f"{record.outcome}: {record.reason}", style="red" if record.outcome == Outcome.FAILED else "dim")
        return (*[""] * (len(_COLUMNS) - _NAMES - 1), reason)
    return (
        duration(record.kernel_ms),
        duration(record.min_ms),
        duration(record.p95_ms),
        "–" if record.rse is None else f"{100 * record.rse:.2f} %",
        f"{record.samples:,}",
        figure(record.gbps, 1),
        figure(record.percent_of_ceiling, 1),
        figure(record.percent_of_peak, 1),
        "–" if record.launches is None else str(record.launches),
        duration(record.host_ms),
        duration(record.issue_ms),
        duration(record.replay_ms),
        Text(" ".join(record.flags), style="bold red" if Flag.SUSPECT in record.flags else "yellow"),
    )


def duration(ms: float | None) -> str:
    """Milliseconds in the unit that shows four digits: "3.712 µs", "927.4 µs", "12.35 ms", "1.204 s"."""
    if ms is None:
        return "–"
    for factor, unit in ((1e3, "µs"), (1.0, "ms"), (1e-3, "s")):
        number = ms * factor
        if number < 999.95 or unit == "s":
            digits = 3 if number < 9.9995 else 2 if number < 99.995 else 1
            return f"{number:.{digits}f} {unit}"
    raise AssertionError("seconds take any number")


def figure(number: float | None, digits: int) -> str:
    return "–" if number is None else f"{number:,.{digits}f}"
