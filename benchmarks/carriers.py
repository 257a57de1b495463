"""Measures what carries exact sums from GPU to GPU: `python -m benchmarks.carriers`.

Each row is one array on so many GPUs of this machine: its exact sum, added up by stores into the other GPUs' memory or
by NCCL. Both take turns, in groups of ranks that live side by side. `local`, `all-reduce` and `total` are those of
`docs/scaling.md`, medians in microseconds; `beyond` is the total less the local part, for which the goal is 4 µs. Every
rank's state is compared with the one that a GPU gets alone. `--out` writes all rows as JSON.
"""

import argparse
import json
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

from benchmarks.provenance import of_script
from warpfold.kernels.backend import GANG
from warpfold.kernels.bench.data import Data
from warpfold.kernels.cuda.scaling.ranks import CudaRanks
from warpfold.kernels.errors import Unavailable
from warpfold.kernels.exact import ExactState
from warpfold.kernels.open import open_backend
from warpfold.kernels.scaling.axes import Algorithm, Carrier, Method, Mode
from warpfold.kernels.scaling.commands import Collect, Load, Piecewise, Sample
from warpfold.kernels.scaling.judge import phases_of
from warpfold.kernels.scaling.local_ranks import Timing
from warpfold.kernels.scaling.placement import Placement, placement_on
from warpfold.kernels.scaling.process import MakeRanks
from warpfold.kernels.scaling.process_group import ProcessGroup
from warpfold.kernels.source import GeneratedSource

SIZES = (1_000_000, 10_000_000, 100_000_000, 1_000_000_000)
RUNS = 8
"""Runs of a turn: as many as a held stream takes."""


@dataclass(frozen=True, slots=True)
class Row:
    """Microseconds of one array, by one carrier."""

    ranks: int
    mode: Mode
    n: int
    carrier: Carrier | None
    local: float
    all_reduce: float
    total: float
    fastest: float
    same_bits: bool

    @property
    def beyond(self) -> float:
        return self.total - self.local


def processes(mode: Mode, ranks: int, *, mailboxes: bool) -> Sequence[MakeRanks]:
    """The processes of a group on the first GPUs."""
    if mode is Mode.ONE_PROCESS or ranks == 1:
        return [partial(CudaRanks, range(ranks), 0, ranks, mailboxes=mailboxes)]
    return [partial(CudaRanks, [rank], rank, ranks, mailboxes=mailboxes) for rank in range(ranks)]


def rows_of(
    group: ProcessGroup, mode: Mode, source: GeneratedSource, timings: list[list[Timing]], state: ExactState
) -> Row:
    """The figures of a group's runs, and whether all its ranks hold `state`."""
    phases = phases_of(timings)
    held = [each for process in group.run(Collect()) for each in process]
    return Row(
        ranks=len(timings),
        mode=mode,
        n=source.count,
        carrier=group.carrier,
        local=phases.local.median * 1e6,
        all_reduce=phases.communication.median * 1e6 if len(timings) > 1 else 0.0,
        total=phases.total.median * 1e6,
        fastest=phases.total.min * 1e6,
        same_bits=held == [state] * len(timings),
    )


def measure(placement: Placement, mode: Mode, ranks: int, sizes: Sequence[int], turns: int) -> list[Row]:
    """The rows of a number of ranks: each array by each carrier, in turns."""
    rows = []
    with ExitStack() as stack:
        carriers = (True, False) if ranks > 1 else (True,)
        groups = [
            stack.enter_context(
                ProcessGroup(processes(mode, ranks, mailboxes=mailboxes), placement.environment(Algorithm.AUTO))
            )
            for mailboxes in carriers
        ]
        for n in sizes:
            source = Data("normal", {}, 0).source("float32", n)
            state = groups[0].run(Piecewise(source))[0]
            timings: list[list[list[Timing]]] = [[] for _ in groups]
            for group in groups:
                group.run(Load(source, Method.EXACT))
            for _ in range(turns):
                for place, group in enumerate(groups):
                    came = [rank for process in group.run(Sample(RUNS)) for rank in process]
                    kept = timings[place] or [[] for _ in came]
                    timings[place] = [old + new for old, new in zip(kept, came, strict=True)]
            rows += [rows_of(group, mode, source, kept, state) for group, kept in zip(groups, timings, strict=True)]
    return rows


def table(rows: Sequence[Row]) -> str:
    lines = [
        "| ranks | processes | n | carrier | local | all-reduce | total | beyond | least total | bits |",
        "|---:|---|---:|---|---:|---:|---:|---:|---:|---|",
    ]
    for row in rows:
        figures = (row.local, row.all_reduce, row.total, row.beyond, row.fastest)
        how = {Mode.ONE_PROCESS: "one", Mode.PROCESS_PER_RANK: "one a rank"}[row.mode]
        lines.append(
            f"| {row.ranks} | {how} | {row.n:,} | {row.carrier or '–'} | "
            + " | ".join(f"{figure:.2f}" for figure in figures)
            + f" | {'yes' if row.same_bits else 'NO'} |"
        )
    return "\n".join(lines)


def main() -> int:
    """Measure, print and write the rows; 1 if there is no GPU, or if any bit is wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="+", default=list(SIZES), help="elements of the whole arrays")
    parser.add_argument("--ranks", type=int, nargs="+", default=[1, 2, 4, 8], help="how many GPUs")
    parser.add_argument("--turns", type=int, default=5, help=f"turns of {RUNS} runs")
    parser.add_argument("--out", type=Path, help="also write the rows here, as JSON")
    arguments = parser.parse_args()
    try:
        placement = placement_on(open_backend(GANG))
    except Unavailable as error:
        print(error, file=sys.stderr)
        return 1
    rows: list[Row] = []
    for mode in Mode:
        for ranks in arguments.ranks:
            if ranks <= placement.available and (ranks > 1 or mode is Mode.ONE_PROCESS):
                rows += measure(placement, mode, ranks, arguments.sizes, arguments.turns)
                print(f"{ranks} ranks, {mode}", file=sys.stderr, flush=True)
    print(table(rows))
    if arguments.out is not None:
        devices = [device.name for device in placement.devices]
        written = {**of_script("benchmarks.carriers"), "devices": devices, "rows": [asdict(row) for row in rows]}
        arguments.out.write_text(json.dumps(written, indent=1) + "\n")
    return 0 if all(row.same_bits for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
