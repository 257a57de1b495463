"""What can be shown without a GPU: the sources compile, and arguments are packed as the driver reads them."""

import ctypes
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from warpfold.kernels.bench.conditions import Conditions
from warpfold.kernels.cuda.bench.blocking_kernel import hold_unit
from warpfold.kernels.cuda.bench.observer import NvmlObserver
from warpfold.kernels.cuda.bench.reader import SHAPES, read_kernel, read_unit
from warpfold.kernels.cuda.compile import ARCHITECTURES, compile_unit
from warpfold.kernels.cuda.gpu.recorded import _pack


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_the_benchmarks_own_kernels_compile_without_spills(arch: str, tmp_path: Path) -> None:
    for unit in (read_unit(), hold_unit()):
        for row in compile_unit(unit, arch, tmp_path).resources:
            assert row.spill_stores == row.spill_loads == row.stack == 0


def test_every_shape_of_reading_has_its_kernel() -> None:
    assert {read_kernel(shape) for shape in SHAPES} < set(read_unit().kernels)


def test_arguments_lie_in_memory_as_the_driver_reads_them() -> None:
    array = SimpleNamespace(data=SimpleNamespace(ptr=0x7F0000001000))
    packed = _pack([array, np.uint64(12), np.uint32(7), np.float64(0.5)])
    table = (ctypes.c_void_p * 4).from_address(packed.address)

    def at(index: int, size: int) -> bytes:
        return ctypes.string_at(table[index] or 0, size)

    assert int.from_bytes(at(0, 8), sys.byteorder) == 0x7F0000001000
    assert int.from_bytes(at(1, 8), sys.byteorder) == 12
    assert int.from_bytes(at(2, 4), sys.byteorder) == 7
    assert np.frombuffer(at(3, 8))[0] == 0.5


def test_without_a_driver_nothing_is_claimed_to_have_been_seen() -> None:
    observer = NvmlObserver("0000:00:00.0")
    assert observer.before() == Conditions()
    assert observer.max_clock_mhz is None
    assert observer.memory_peak is None
