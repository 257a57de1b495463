"""All that exact reductions on a CPU call, compiled ahead of need."""

from dataclasses import replace
from functools import partial

import numpy as np
import pyarrow
import pytest
from numba.core.dispatcher import Dispatcher

from warpfold.kernels.cpu.ahead import compile_all
from warpfold.kernels.cpu.backend import CpuBackend
from warpfold.kernels.dtypes import DTYPES
from warpfold.kernels.formats.dialect import Dialect
from warpfold.kernels.formats.plain_text import TextLayout, plain_columns
from warpfold.kernels.formats.text_blocks import Lines
from warpfold.kernels.formats.text_types import TextColumns
from warpfold.kernels.ops import OPS
from warpfold.kernels.parts.keyed import Aggregation, Cells, GroupPlan, KeyedPart, KeyedRows, KeyedSource
from warpfold.kernels.source import ArraySource


@pytest.mark.timeout(900)  # a minute of compiling, of which a loaded machine made five
def test_afterwards_there_is_nothing_left_to_compile() -> None:
    from warpfold.kernels.aggregates import integer_loops, loops
    from warpfold.kernels.cpu.keyed import loops as of_keys
    from warpfold.kernels.cpu.windows import adding, keyed
    from warpfold.kernels.formats import text_lines

    backend = CpuBackend()
    assert compile_all(backend) > 150
    compiled = {width: len(adding.adding(width).signatures) for width in (2, 4, 8)}
    sums = len(integer_loops.add_rows.signatures)
    for dtype in (np.float16, np.float32, np.float64, np.int8, np.int16, np.int32, np.int64):
        backend.reduce(ArraySource(np.ones(3, dtype=dtype)), "sum")
    assert compiled == {width: len(adding.adding(width).signatures) for width in compiled}
    assert sums == len(integer_loops.add_rows.signatures) == 2

    def by_key() -> int:
        functions = [each for module in (keyed, loops, integer_loops, of_keys) for each in vars(module).values()]
        return sum(len(each.signatures) for each in functions if isinstance(each, Dispatcher))

    known = by_key()
    column = pyarrow.array([1, 2, 1])
    rows = KeyedRows(0, (column,), (Cells(np.array([0.1, 1e300, 2.5])),))
    for kind in (pyarrow.int64(), pyarrow.string()):
        read = KeyedPart(0, 3, partial(replace, rows, keys=(column.cast(kind),)))
        source = KeyedSource(("k",), (kind,), ("x",), (DTYPES["float64"],), partial(iter, (read,)), 3)
        for op in ("sum", "var", "max"):
            table = backend.group_by(source, GroupPlan((Aggregation(OPS[op], 0, op),)))
            assert table.columns[0].counts.tolist() == [2, 1]
    assert by_key() == known > 20

    [scanned] = text_lines.scan.signatures
    lines = Lines.of(memoryview(bytearray(b"x\n1.5\n2.5\n")), Dialect())  # which is writable, and other texts are not
    columns = plain_columns(lines, TextLayout(("x",), Dialect()), TextColumns({"x": pyarrow.float64()}), headed=True)
    assert columns is not None
    assert columns.numbers() is not None
    assert [scanned] == text_lines.scan.signatures
