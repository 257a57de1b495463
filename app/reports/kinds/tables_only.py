"""Reductions and puzzles in a row or a few."""

from warpfold.app.reports.parts import Table
from warpfold.app.reports.words import exactly, milliseconds, yes
from warpfold.contract.kinds.cluster import ClusterResult
from warpfold.contract.kinds.reduce import ReduceResult


def tables(result: ReduceResult | ClusterResult) -> tuple[Table, ...]:
    """What came out, how; of a puzzle its checks, too."""
    return _reduction(result) if isinstance(result, ReduceResult) else _puzzle(result)


def _reduction(result: ReduceResult) -> tuple[Table, ...]:
    row = (
        result.op,
        result.strategy,
        result.backend,
        f"{result.count:,}",
        exactly(result.value),
        result.hex or "",
        yes(result.correctly_rounded),
        milliseconds(result.timings.kernel_ms),
    )
    columns = ("op", "strategy", "backend", "n", "value", "hex", "correctly rounded", "ms")
    return (Table(title="Result", columns=columns, rows=(row,)),)


def _puzzle(result: ClusterResult) -> tuple[Table, ...]:
    blocks = map(str, range(len(result.texts)))
    values = tuple(zip(blocks, result.texts, result.hex, strict=True))
    checks = tuple((check.name, yes(check.passed)) for check in result.checks)
    note = f"By the model on the CPU: {result.why_model}" if result.model else "By a thread-block cluster on the GPU."
    return (
        Table(title="Values (float32)", columns=("block", "value", "hex"), rows=values, note=note),
        Table(title="Checks", columns=("check", "passed"), rows=checks),
    )
