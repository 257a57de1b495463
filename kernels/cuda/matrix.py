"""The compile matrix: every kernel we have, for every architecture.

"ci" selects everything for sm_90 and, for each other architecture, a part in which every strategy, op, dtype and source
occurs; "all" selects everything for every architecture.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from warpfold.kernels.cuda.bench.blocking_kernel import hold_unit
from warpfold.kernels.cuda.bench.reader import read_unit
from warpfold.kernels.cuda.compile import ARCHITECTURES, Unit
from warpfold.kernels.cuda.exact import exact_units, integer_dot_units
from warpfold.kernels.cuda.grouped.folds import fold_units
from warpfold.kernels.cuda.grouped.shapes import grouped_units
from warpfold.kernels.cuda.grouped.totals import totals_units
from warpfold.kernels.cuda.keyed.shapes import keyed_units
from warpfold.kernels.cuda.picks.kernels import picks_units
from warpfold.kernels.cuda.puzzles import CLUSTERS_SINCE, puzzle_unit
from warpfold.kernels.cuda.ranks.kernels import ranks_units
from warpfold.kernels.cuda.resident.levels import level_units
from warpfold.kernels.cuda.resident.shapes import resident_units
from warpfold.kernels.cuda.rolling.kernels import windows_units
from warpfold.kernels.cuda.scaling.mailboxes import mailboxes_unit
from warpfold.kernels.cuda.staging.file_ring import pull_unit
from warpfold.kernels.cuda.staging.generator import generator_unit
from warpfold.kernels.cuda.staging.nans import nans_unit
from warpfold.kernels.cuda.staging.widening import widening_unit
from warpfold.kernels.cuda.strategies.registry import own_strategies
from warpfold.kernels.dtypes import DTYPES, DType
from warpfold.kernels.puzzles.puzzle import Puzzle

T = TypeVar("T")

WHOLE = "sm_90"
DTYPES_SHARE = 4
"""One dtype of a strategy in so many is in the part of an architecture."""

UNITS_SHARE = 6
"""One unit of any other source in so many is in the part of an architecture. Architectures that follow each other have
different units, so that all parts together have every unit."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One unit for one architecture."""

    unit: Unit
    arch: str
    label: str


def cells(arch: str, *, whole: bool) -> Iterator[Cell]:
    """The units to compile for `arch`: all, or the part of it that covers every strategy, op, dtype and source."""
    turn = ARCHITECTURES.index(arch)
    runnable = [(own, tuple(own.units())) for own in own_strategies().values() if own.runs_on(arch)]
    # Strategies of every dtype come first, so that the first DTYPES_SHARE of them share out all dtypes.
    for number, (strategy, units) in enumerate(sorted(runnable, key=lambda row: -len(row[1]))):
        for dtype, unit in units if whole else _part(units, DTYPES_SHARE, turn + number):
            yield Cell(unit, arch, f"{strategy.name} {dtype.name}")
    for dtype in DTYPES.values():
        yield from _services(dtype, arch)
    others = [*exact_units(), *grouped_units(), *fold_units(), *totals_units(), *keyed_units(), *resident_units()]
    others += [*integer_dot_units(), *level_units(), *picks_units(), *ranks_units(), *windows_units()]
    others += [widening_unit(DTYPES["float32"]), widening_unit(DTYPES["float64"]), hold_unit(), read_unit()]
    others += [pull_unit(), mailboxes_unit()]
    if int(arch.removeprefix("sm_")) >= CLUSTERS_SINCE:
        others += [puzzle_unit(puzzle) for puzzle in Puzzle]
    of_sources: dict[Path, list[Unit]] = {}
    for unit in others:
        of_sources.setdefault(unit.source, []).append(unit)
    for same_source in of_sources.values():
        for unit in same_source if whole else _part(same_source, UNITS_SHARE, turn):
            yield Cell(unit, arch, f"{unit.source.stem} {_element_of(unit)}".strip())


def _part(everything: Sequence[T], share: int, first: int) -> Sequence[T]:
    """One in `share`, and at least one; the count begins at `first`, which goes round."""
    return everything[first % min(share, len(everything)) :: share]


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
