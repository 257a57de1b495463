"""`python -m warpfold.kernels.cpu.ahead` compiles all functions that exact reductions on a CPU call, and what reads
text, into Numba's cache. The worker of a CPU slot runs this process in the background, with the lowest priority: a
function takes up to seconds to compile, and milliseconds to load from the cache.
"""

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from warpfold.kernels.catalog import resolve_grouped
from warpfold.kernels.driver import Backend
from warpfold.kernels.dtypes import DTYPES
from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.formats.plain_text import compile_now
from warpfold.kernels.generate import DISTRIBUTIONS
from warpfold.kernels.ops import OPS, Op, Terms
from warpfold.kernels.parts.grouping import AlongAxes
from warpfold.kernels.parts.keyed import Aggregation, GroupPlan, KeyedSource
from warpfold.kernels.source import ArraySource, GeneratedSource, Source
from warpfold.kernels.strategy import AUTO, EXACT

_LOWEST = 19
_COMMON = ("float64", "int64", "float32")


def compile_all(backend: Backend) -> int:
    """Read a line of text, and reduce an element by every op of every dtype, also by key, and an element of every
    distribution; return the number of reductions."""
    compile_now()
    done = 0
    if find_spec("pyarrow"):  # tables need it
        for rows, plan in _rows_by_key():
            backend.group_by(rows, plan)
            done += 1
    for op, source, other in _reductions():
        try:
            backend.reduce(source, op, strategy=EXACT, other=other)
            if isinstance(source, ArraySource):
                backend.reduce_groups(source, (1,), AlongAxes((0,)), op, strategy=EXACT, other=other)
            done += 1
        except InvalidInput:  # the op has no exact strategy for this dtype, or the distribution needs parameters
            continue
    return done


def give_way() -> None:
    """Let this process have only what all other processes leave of the processor.

    Linux may share a processor among sessions first: then the priority of a process counts within its session alone,
    and that of a session counts beside the others. The process therefore becomes a session of its own.
    """
    os.setpriority(os.PRIO_PROCESS, 0, _LOWEST)
    with suppress(OSError):  # the process leads a session already, or the system does not share by sessions
        os.setsid()
        Path("/proc/self/autogroup").write_text(str(_LOWEST))


def _ops() -> Sequence[Op]:
    """The ops that a backend knows. All others are made of their sums."""
    return [op for op in OPS.values() if op.terms is not Terms.TOTALS]


def _reductions() -> Iterator[tuple[str, Source, Source | None]]:
    elements = [ArraySource(np.ones(1, dtype=np.int8).astype(row.numpy)) for row in DTYPES.values()]
    for op in _ops():
        for element in elements:
            if op.sources == 1:
                yield op.name, element, None
            else:
                yield from (
                    (op.name, element, other) for other in elements if other.dtype.is_float == element.dtype.is_float
                )
    for row in DISTRIBUTIONS.values():
        for dtype in row.dtypes:
            yield "sum", GeneratedSource(row.name, 1, 0, DTYPES[dtype]), None


def _rows_by_key() -> Iterator[tuple[KeyedSource, GroupPlan]]:
    """No rows, with keys of integers or words and a column of a dtype, and a plan with all of its ops by key: a backend
    compiles what such rows need before it asks for them. Another plan adds nothing, and counts rows. The commonest
    dtypes come first."""
    import pyarrow

    for row in sorted(DTYPES.values(), key=lambda row: row.name not in _COMMON):
        able = [op for op in _ops() if op.sources == 1 and resolve_grouped(op, row, AUTO) == EXACT]
        for ops in (able, [OPS["max"]]):
            plan = GroupPlan(tuple(Aggregation(op, 0, op.name) for op in ops))
            for kind in (pyarrow.int64(), pyarrow.string()):
                yield KeyedSource(("key",), (kind,), ("column",), (row,), lambda: iter(()), 1), plan


def main() -> int:
    from warpfold.kernels.cpu.backend import CpuBackend
    from warpfold.kernels.machine.parent_death import end_with

    end_with(int(sys.argv[1]))
    give_way()  # before any import that compiles
    compile_all(CpuBackend())
    return 0


if __name__ == "__main__":
    sys.exit(main())
