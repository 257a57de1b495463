from pathlib import Path

import pytest

from warpfold.kernels.cuda.bench.blocking_kernel import hold_unit
from warpfold.kernels.cuda.bench.reader import SHAPES, read_kernel, read_unit
from warpfold.kernels.cuda.compile import ARCHITECTURES, compile_unit


@pytest.mark.parametrize("arch", [ARCHITECTURES[0], ARCHITECTURES[-1]])  # `make check` compiles for all
def test_the_benchmarks_own_kernels_compile_without_spills(arch: str, tmp_path: Path) -> None:
    for unit in (read_unit(), hold_unit()):
        for row in compile_unit(unit, arch, tmp_path).resources:
            assert row.spill_stores == row.spill_loads == row.stack == 0


def test_every_shape_of_reading_has_its_kernel() -> None:
    assert {read_kernel(shape) for shape in SHAPES} < set(read_unit().kernels)
