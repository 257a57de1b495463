"""The command `python -m warpfold.kernels.cuda`: it compiles the matrix without a GPU, and says what its kernels
take."""

import argparse
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path

from warpfold.kernels.cuda.compile import ARCHITECTURES, Binary, compile_unit, nvrtc_version
from warpfold.kernels.cuda.matrix import Cell, matrix
from warpfold.kernels.cuda.resources import TABLE, Key, Usage, changes, read_table, updated, write_table
from warpfold.kernels.errors import KernelError, Unavailable
from warpfold.kernels.machine.cores import usable_cores


@dataclass(frozen=True, slots=True)
class Compiled:
    """The machine code of a cell, or the reason why the cell has no code."""

    cell: Cell
    seconds: float
    binary: Binary | None
    fault: str = ""


def compile_cell(cell: Cell, cache: Path | None) -> Compiled:
    """Compile one cell. A fault of the source is returned. Unavailable is raised, because every other cell would meet
    it, too."""
    began = time.perf_counter()
    try:
        binary = compile_unit(cell.unit, cell.arch, cache)
    except Unavailable:
        raise
    except KernelError as error:
        return Compiled(cell, time.perf_counter() - began, None, str(error))
    return Compiled(cell, time.perf_counter() - began, binary)


def main(arguments: Sequence[str]) -> int:
    """The command line: it compiles on all processors and prints a table. It returns 1 if a unit does not compile or a
    kernel takes other resources than the committed table says, and 2 if the arguments are wrong or no compiler is
    installed."""
    parser = argparse.ArgumentParser(prog="python -m warpfold.kernels.cuda", description=__doc__)
    some = f"ci (all for sm_90, a part for each other), all, or some of {','.join(ARCHITECTURES)}"
    parser.add_argument("--arch", default="ci", help=some)
    parser.add_argument("--cache", type=Path, help="folder of compiled kernels (default: the user's cache)")
    parser.add_argument("--jobs", type=int, default=usable_cores(), help="processes")
    parser.add_argument("--table", type=Path, default=TABLE, help="what each kernel may take (default: resources.csv)")
    parser.add_argument("--update-table", action="store_true", help="write down what the compiled kernels take")
    detail = parser.add_mutually_exclusive_group()
    detail.add_argument("--verbose", action="store_true", help="one line a kernel instead of one a unit")
    detail.add_argument("--quiet", action="store_true", help="only what is wrong, and the summary")
    options = parser.parse_args(arguments)
    try:
        chosen = matrix(options.arch)
    except ValueError as error:
        parser.error(str(error))
    began = time.perf_counter()
    done: list[Compiled] = []
    try:
        with ProcessPoolExecutor(options.jobs, mp_context=get_context("spawn")) as pool:
            waiting = [pool.submit(compile_cell, cell, options.cache) for cell in chosen]
            for future in as_completed(waiting):
                done.append(future.result())
                _show_progress(len(done), len(chosen), done[-1].cell)
    except Unavailable as error:
        print(error, file=sys.stderr)
        return 2
    order = {cell: index for index, cell in enumerate(chosen)}
    done.sort(key=lambda compiled: order[compiled.cell])
    if not options.quiet:
        print_table(done, verbose=options.verbose)
    print_summary(done, time.perf_counter() - began)
    if any(compiled.binary is None for compiled in done):
        return 1
    return _update(options.table, done) if options.update_table else _compare(options.table, done)


def _show_progress(done: int, total: int, cell: Cell) -> None:
    if sys.stderr.isatty():
        end = "\n" if done == total else ""
        print(f"\r\x1b[K{done}/{total} {cell.arch} {cell.label}", end=end, file=sys.stderr, flush=True)


def print_table(done: Sequence[Compiled], *, verbose: bool) -> None:
    """Print what each unit, or with `verbose` each kernel, takes: registers a thread, and bytes of shared memory a
    block, of stack and of spills a thread. A unit takes what its worst kernel takes."""
    head = ("arch", "kernels of", "kernels", "registers", "shared", "stack", "spills", "s")
    print("{:8} {:40} {:>7} {:>9} {:>7} {:>5} {:>6} {:>6}".format(*head))
    for compiled in done:
        if compiled.binary is None:
            continue
        resources = compiled.binary.resources
        rows = [(row.kernel, (row,)) for row in resources] if verbose else [(compiled.cell.label, resources)]
        for label, group in rows:
            registers, shared = max(row.registers for row in group), max(row.shared for row in group)
            stack, spills = max(row.stack for row in group), max(row.spill_stores + row.spill_loads for row in group)
            print(
                f"{compiled.cell.arch:8} {label:40} {len(group):7} {registers:9} {shared:7} {stack:5} {spills:6} "
                f"{compiled.seconds:6.2f}"
            )


def print_summary(done: Sequence[Compiled], seconds: float) -> None:
    """Print what does not compile, and how much was compiled."""
    faulty = [compiled for compiled in done if compiled.binary is None]
    for compiled in faulty:
        print(f"{compiled.cell.arch} {compiled.cell.label} DOES NOT COMPILE\n{compiled.fault}")
    binaries = [compiled.binary for compiled in done if compiled.binary is not None]
    print(
        f"{sum(len(binary.resources) for binary in binaries)} kernels in {len(done)} units for "
        f"{len({compiled.cell.arch for compiled in done})} architectures in {seconds:.1f} s "
        f"({sum(binary.cached for binary in binaries)} units from the cache): {len(faulty)} do not compile"
    )


def _usages(done: Sequence[Compiled]) -> dict[Key, Usage]:
    return {
        (row.kernel, compiled.cell.arch): Usage.of(row)
        for compiled in done
        if compiled.binary is not None
        for row in compiled.binary.resources
    }


def _known() -> dict[Key, None]:
    """Every kernel on every architecture, in the order of the table: kernel after kernel."""
    keys = [(kernel, cell.arch) for cell in matrix("all") for kernel in cell.unit.kernels]
    rank = {kernel: index for index, kernel in enumerate(dict.fromkeys(kernel for kernel, _ in keys))}
    return dict.fromkeys(sorted(keys, key=lambda key: rank[key[0]]))


def _compare(path: Path, done: Sequence[Compiled]) -> int:
    """Print where kernels take other resources than the table says; returns 1 if any does."""
    table, nvrtc = read_table(path), nvrtc_version()
    if table.nvrtc != nvrtc:
        print(f"{path.name} is of NVRTC {table.nvrtc or '(none)'} and this is {nvrtc}: only spills are compared")
    differing = changes(table, nvrtc, _usages(done), _known())
    if not differing:
        return 0
    units = "registers a thread/shared bytes a block[/bytes of spills]"
    print(f"{len(differing)} kernels differ from {path.name} ({units}):")
    for change in differing:
        print(f"  {change}")
    if any(change.spills for change in differing):
        print("spills cost memory traffic: give these kernels fewer registers to need, or fewer threads to share them")
    print("if that is meant: python -m warpfold.kernels.cuda --arch ci --quiet --update-table")
    return 1


def _update(path: Path, done: Sequence[Compiled]) -> int:
    """Write the table; returns 1 if too little was compiled for that."""
    try:
        needed = [(kernel, cell.arch) for cell in matrix("ci") for kernel in cell.unit.kernels]
        write_table(updated(read_table(path), nvrtc_version(), _usages(done), _known(), needed), path)
    except ValueError as error:
        print(error, file=sys.stderr)
        return 1
    print(f"wrote {path}")
    return 0
