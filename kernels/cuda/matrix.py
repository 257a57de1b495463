"""The compile matrix: every kernel we have, for every architecture.

"ci" selects everything for sm_90 and, for each other architecture, a part in which every strategy, op and dtype occurs;
"all" selects everything for every architecture.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from warpfold.kernels.cuda.bench.blocking_kernel import hold_unit
from warpfold.kernels.cuda.bench.reader import read_unit
from warpfold.kernels.cuda.compile import ARCHITECTURES, Unit
from warpfold.kernels.cuda.exact import exact_units, integer_dot_units
from warpfold.kernels.cuda.grouped.folds import fold_units
from warpfold.kernels.cuda.grouped.shapes import grouped_units
from warpfold.kernels.cuda.grouped.totals import totals_units
from warpfold.kernels.cuda.keyed.shapes import keyed_units
from warpfold.kernels.cuda.puzzles import CLUSTERS_SINCE, puzzle_unit
from warpfold.kernels.cuda.resident.shapes import resident_units
from warpfold.kernels.cuda.staging.generator import generator_unit
from warpfold.kernels.cuda.staging.nans import nans_unit
from warpfold.kernels.cuda.staging.widening import widening_unit
from warpfold.kernels.cuda.strategies.registry import own_strategies
from warpfold.kernels.dtypes import DTYPES, DType
from warpfold.kernels.puzzles.puzzle import Puzzle

WHOLE = "sm_90"
STRIDE = 3
"""One dtype of a strategy in so many is in an architecture's part."""

FOLD_STRIDE = 6
"""One dtype in so many of the ops along axes is compiled for other architectures than WHOLE."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One unit for one architecture."""

    unit: Unit
    arch: str
    label: str


def cells(arch: str, *, whole: bool) -> Iterator[Cell]:
    """The units to compile for `arch`: all, or the part of it that covers every strategy, op and dtype."""
    for number, strategy in enumerate(own_strategies().values()):
        if not strategy.runs_on(arch):
            continue
        for index, (dtype, unit) in enumerate(strategy.units()):
            if whole or index % STRIDE == number % STRIDE:
                yield Cell(unit, arch, f"{strategy.name} {dtype.name}")
    for dtype in DTYPES.values():
        yield from _services(dtype, arch)
    widening = [widening_unit(DTYPES[name]) for name in ("float32", "float64")]
    folds = [
        unit
        for number, unit in enumerate((*fold_units(), *totals_units()))
        if arch == WHOLE or number % FOLD_STRIDE == 0
    ]
    others = [*exact_units(), *grouped_units(), *folds, *integer_dot_units(), *widening, hold_unit(), read_unit()]
    others += keyed_units(whole=whole)
    if int(arch.removeprefix("sm_")) >= CLUSTERS_SINCE:
        others += [puzzle_unit(puzzle) for puzzle in Puzzle]
    resident = resident_units()
    others += resident if arch == WHOLE else [resident[(ARCHITECTURES.index(arch) + 2) % len(resident)]]
    for unit in others:
        yield Cell(unit, arch, f"{unit.source.stem} {_element_of(unit)}".strip())


def _element_of(unit: Unit) -> str:
    """The element type in the names of a unit's kernels, where they have one."""
    match = re.search(r"<(\w*(?:int|float)\d+)\b", unit.kernels[0])
    return match[1] if match else ""


def _services(dtype: DType, arch: str) -> Iterator[Cell]:
    yield Cell(generator_unit(dtype), arch, f"generate {dtype.name}")
    if dtype.is_float:
        yield Cell(nans_unit(dtype), arch, f"nans {dtype.name}")


def matrix(selection: str) -> list[Cell]:
    """The cells of "ci", "all", or architectures separated by commas. Raises ValueError for anything else."""
    if selection in ("ci", "all"):
        return [cell for arch in ARCHITECTURES for cell in cells(arch, whole=selection == "all" or arch == WHOLE)]
    chosen = selection.split(",")
    unknown = [arch for arch in chosen if arch not in ARCHITECTURES]
    if unknown:
        raise ValueError(f"unknown architecture {unknown[0]!r}; known: ci, all, {', '.join(ARCHITECTURES)}")
    return [cell for arch in chosen for cell in cells(arch, whole=True)]
