"""Kernel profiles as tables."""

from warpfold.app.reports.parts import Table
from warpfold.app.reports.words import ABSENT, figure, percent
from warpfold.contract.kinds.profile import KernelProfile, ProfilePoint, ProfileResult


def tables(result: ProfileResult) -> tuple[Table, ...]:
    """One row a kernel of each strategy and size."""
    columns = ("strategy", "op", "dtype", "n", "kernel", "registers", "shared", "spills", "blocks × threads")
    more = ("occupancy", "waves", "DRAM", "warp efficiency", "achieved occupancy")
    rows = tuple(_row(point, kernel) for point in result.points for kernel in point.kernels)
    whys = {why: None for point in result.points for why in (point.reason, point.counters_unavailable) if why}
    note = "; ".join([*([result.note] if result.note else []), *whys]) or None
    return (Table(title=f"Kernels for {result.arch}", columns=columns + more, rows=rows, note=note),)


def _row(point: ProfilePoint, kernel: KernelProfile) -> tuple[str, ...]:
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
