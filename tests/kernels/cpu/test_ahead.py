"""All that exact reductions on a CPU call, compiled ahead of need."""

import numpy as np
import pyarrow
import pytest

from warpfold.kernels.cpu.ahead import compile_all
from warpfold.kernels.cpu.backend import CpuBackend
from warpfold.kernels.formats.plain_text import TextLayout, plain_columns
from warpfold.kernels.source import ArraySource


@pytest.mark.timeout(900)  # a minute of compiling, of which a loaded machine made five
def test_afterwards_there_is_nothing_left_to_compile() -> None:
    from warpfold.kernels.cpu import integers, windows
    from warpfold.kernels.formats import text_lines

    backend = CpuBackend()
    assert compile_all(backend) > 150
    compiled = {name: len(getattr(windows, name).signatures) for name in ("add_float32", "add_float64")}
    sums = len(integers.add_signed.signatures)
    for dtype in (np.float16, np.float32, np.float64, np.int8, np.int16, np.int32, np.int64):
        backend.reduce(ArraySource(np.ones(3, dtype=dtype)), "sum")
    assert compiled == {name: len(getattr(windows, name).signatures) for name in compiled}
    assert sums == len(integers.add_signed.signatures) >= 4

    [scanned] = text_lines.scan.signatures
    lines = memoryview(bytearray(b"x\n1.5\n2.5\n"))  # which is writable, and other texts are not
    columns = plain_columns(lines, TextLayout(("x",), ","), {"x": pyarrow.float64()}, headed=True)
    assert columns is not None
    assert columns.numbers() is not None
    assert [scanned] == text_lines.scan.signatures
