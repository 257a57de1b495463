"""Profiles kernels by Nsight Compute: `python -m benchmarks.ncu --strategy single_pass cub --n 268435456`.

Each strategy runs once; caches are flushed before, and clocks stay as they are. The table has a column for each kernel:
how long it ran, how much it read and how fast, how busy the multiprocessors were, and for what their warps waited. That
is more than a profile job (`kernels/cuda/profile`) measures. The script needs the CUDA toolkit's `ncu` and the right to
read performance counters.
"""

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

from rich.console import Console
from rich.table import Table

from warpfold.kernels.cuda.profile.counters import profiled
from warpfold.kernels.dtypes import DTYPES
from warpfold.kernels.errors import Unavailable

Figure = tuple[str, Callable[[float], str]]


def _plain(number: float) -> str:
    return f"{number:,.0f}"


def _tenths(number: float) -> str:
    return f"{number:,.1f}"


METRICS: Mapping[str, Figure] = MappingProxyType(
    {
        "gpu__time_duration.sum": ("µs", lambda ns: f"{ns / 1e3:,.2f}"),
        "launch__grid_size": ("blocks", _plain),
        "launch__block_size": ("threads", _plain),
        "launch__registers_per_thread": ("registers", _plain),
        "dram__bytes_read.sum": ("MB from memory", lambda count: f"{count / 1e6:,.1f}"),
        "dram__throughput.avg.pct_of_peak_sustained_elapsed": ("% of memory's peak", _tenths),
        "lts__t_sector_hit_rate.pct": ("% L2 hits", _tenths),
        "sm__warps_active.avg.pct_of_peak_sustained_active": ("% warps", _tenths),
        "sm__cycles_active.min": ("least busy, cycles", _plain),
        "sm__cycles_active.avg": ("busy on average", _plain),
        "sm__cycles_active.max": ("busiest", _plain),
        "smsp__average_warps_issue_stalled_long_scoreboard_per_issue_active.ratio": ("waits for memory", _tenths),
        "smsp__average_warps_issue_stalled_barrier_per_issue_active.ratio": ("for barriers", _tenths),
        "smsp__average_warps_issue_stalled_no_instruction_per_issue_active.ratio": ("for instructions", _tenths),
    }
)
"""By ncu's name: the heading, and how the value in ncu's base unit is written. Waits are warps that wait for it, a
warp that issues."""


def table(counted: Mapping[tuple[str, int], Sequence[Mapping[str, str]]]) -> Table:
    """A table with a line for each figure and a column for each kernel."""
    drawn = Table("")
    columns = [(strategy, n, row) for (strategy, n), rows in counted.items() for row in rows]
    for strategy, n, row in columns:
        drawn.add_column(f"{strategy} {n:,}\n{_short(row['Kernel Name'])}", justify="right")
    for metric, (heading, show) in METRICS.items():
        drawn.add_row(heading, *(show(float(row[metric].replace(",", ""))) for _, _, row in columns))
    return drawn


def _short(kernel: str) -> str:
    """A kernel's name without its template arguments, parameters and namespaces."""
    return kernel.removeprefix("void ").partition("<")[0].partition("(")[0].rpartition("::")[2]


def main() -> int:
    """Print the table, and return the exit code, which is 2 where ncu measures nothing."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--strategy", nargs="+", default=["single_pass", "cub"])
    parser.add_argument("--op", default="sum")
    parser.add_argument("--dtype", default="float32", choices=list(DTYPES))
    parser.add_argument("--n", type=int, nargs="+", default=[1 << 28])
    arguments = parser.parse_args()
    cases = [(strategy, n) for n in arguments.n for strategy in arguments.strategy]
    try:
        counted = {
            (strategy, n): profiled(0, strategy, arguments.op, arguments.dtype, n, metrics=tuple(METRICS))
            for strategy, n in cases
        }
    except Unavailable as error:
        print(error, file=sys.stderr)
        return 2
    Console(width=200).print(table(counted))
    return 0


if __name__ == "__main__":
    sys.exit(main())
