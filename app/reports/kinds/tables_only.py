"""Results that are shown as tables and have no charts: reductions, puzzles of clusters, kernel profiles, and sums
of three numbers."""

from itertools import islice, product

from warpfold.app.reports.report import Table
from warpfold.contract.artefact import Artefact
from warpfold.contract.kinds.cluster import ClusterResult
from warpfold.contract.kinds.profile import KernelProfile, ProfilePoint, ProfileResult
from warpfold.contract.kinds.reduce import ReduceArrayResult, ReduceResult
from warpfold.contract.kinds.three_numbers import ThreeNumbersResult
from warpfold.contract.wording import ABSENT, exactly, figure, milliseconds, percent, yes_or_no
from warpfold.kernels.ops import Value


def reduction(result: ReduceResult) -> tuple[Table, ...]:
    """The value and how it was computed, in one row."""
    row = (
        result.op,
        result.strategy,
        result.backend,
        f"{result.count:,}",
        _in_words(result.value),
        result.hex if isinstance(result.hex, str) else "",
        yes_or_no(result.correctly_rounded),
        milliseconds(result.timings.kernel_ms),
    )
    columns = ("op", "strategy", "backend", "n", "value", "hex", "correctly rounded", "ms")
    return (Table(title="Result", columns=columns, rows=(row,)),)


_MOST_SHOWN = 1000


def array(result: ReduceArrayResult) -> tuple[Table, ...]:
    """A row for each value, with its index; of a stored result, the first values."""
    shape = " × ".join(map(str, result.shape)) or "one value"
    title = f"{result.op} by {result.kernel} ({result.strategy}), {result.dtype}, {shape}"
    if result.values is None or result.counts is None:
        assert result.artefact is not None, "values that do not stand in the result are stored"
        return (preview(result.artefact, title),)
    shown = list(islice(product(*map(range, result.shape)), _MOST_SHOWN))
    hexes = result.hex or ("",) * len(result.values)
    words = _words_of(result)
    texts = words or (ABSENT if value is None else exactly(value) for value in result.values)
    fractions = [] if result.fraction is None else [[ABSENT if each is None else str(each) for each in result.fraction]]
    rows = tuple(
        (", ".join(map(str, index)), text, hexadecimal or "", f"{count:,}", *exact)
        for index, text, hexadecimal, count, *exact in zip(shown, texts, hexes, result.counts, *fractions, strict=False)
    )
    more = f"The first {len(rows):,} of {len(result.values):,} values." if len(rows) < len(result.values) else None
    return (
        Table(
            title=title,
            columns=("index", "value", "hex", "elements", *(["exactly"] if fractions else [])),
            rows=rows,
            note=more,
        ),
    )


def _words_of(result: ReduceArrayResult) -> tuple[str, ...]:
    """Decimals in full, or instants and durations in ISO 8601; nothing of other values."""
    if result.time is not None:
        return tuple(ABSENT if time is None else time.iso for time in result.time)
    return tuple(ABSENT if decimal is None else decimal for decimal in result.decimal or ())


def preview(artefact: Artefact, title: str) -> Table:
    """The first rows of a result that is stored."""
    rows = tuple(
        tuple(ABSENT if cell is None else cell if isinstance(cell, str) else exactly(cell) for cell in row)
        for row in artefact.preview
    )
    more = f"The first {len(rows):,} of {artefact.rows:,} rows; all of them are stored, {artefact.bytes:,} bytes."
    return Table(title=title, columns=artefact.preview_columns, rows=rows, note=more)


def cluster(result: ClusterResult) -> tuple[Table, ...]:
    """The values of the blocks, and the checks of the puzzle."""
    blocks = map(str, range(len(result.texts)))
    values = tuple(zip(blocks, result.texts, result.hex, strict=True))
    checks = tuple((check.name, yes_or_no(check.passed)) for check in result.checks)
    note = f"By the model on the CPU: {result.why_model}" if result.model else "By a thread-block cluster on the GPU."
    return (
        Table(title="Values (float32)", columns=("block", "value", "hex"), rows=values, note=note),
        Table(title="Checks", columns=("check", "passed"), rows=checks),
    )


def three_numbers(result: ThreeNumbersResult) -> tuple[Table, ...]:
    """A row for each way to add the three numbers."""
    rows = tuple(
        (order.expression, exactly(order.inner), exactly(order.value), figure(order.absolute_error))
        for order in result.orders
    )
    title = f"a = {result.a!r}, b = {result.b!r}, c = {result.c!r} in {result.dtype}; exact: {result.exact!r}"
    return (Table(title=title, columns=("sum", "in the brackets", "value", "|error|"), rows=rows),)


def profile(result: ProfileResult) -> tuple[Table, ...]:
    """A row for each kernel of each strategy and size."""
    columns = ("strategy", "op", "dtype", "n", "kernel", "registers", "shared", "spills", "blocks × threads")
    more = ("occupancy", "waves", "DRAM", "warp efficiency", "achieved occupancy")
    rows = tuple(_kernel(point, kernel) for point in result.points for kernel in point.kernels)
    whys = {why: None for point in result.points for why in (point.reason, point.counters_unavailable) if why}
    note = "; ".join([*([result.note] if result.note else []), *whys]) or None
    return (Table(title=f"Kernels for {result.arch}", columns=columns + more, rows=rows, note=note),)


def _kernel(point: ProfilePoint, kernel: KernelProfile) -> tuple[str, ...]:
    counters = kernel.counters
    launch = ABSENT if kernel.blocks is None else f"{kernel.blocks:,} × {kernel.threads}"
    return (
        point.strategy,
        point.op,
        point.dtype,
        ABSENT if point.n is None else f"{point.n:,}",
        kernel.name,
        str(kernel.registers),
        f"{kernel.static_shared + (kernel.dynamic_shared or 0):,} B",
        f"{kernel.spill_stores + kernel.spill_loads:,} B",
        launch,
        percent(kernel.occupancy_percent),
        figure(kernel.waves),
        percent(counters.dram_percent if counters else None),
        percent(counters.warp_efficiency_percent if counters else None),
        percent(counters.achieved_occupancy_percent if counters else None),
    )


def _in_words(value: Value | complex | None) -> str:
    """A value in a table."""
    if value is None or isinstance(value, complex):
        return "null" if value is None else str(value)
    return exactly(value)
