"""The exact accumulator compiles for every architecture, without a GPU, and keeps its promises about arithmetic.

All units are compiled for one architecture and a part for each other, as by `make check`, whose cache they come from.
"""

import re
import shutil
import subprocess

import pytest

from warpfold.kernels.cuda.compile import ARCHITECTURES, compile_unit
from warpfold.kernels.cuda.exact import SHAPES, exact_unit, exact_units
from warpfold.kernels.cuda.exact.shapes import CHOICES, chosen_unit
from warpfold.kernels.cuda.matrix import Cell, matrix
from warpfold.kernels.dtypes import DTYPES

SMALL = 64 << 10  # shared memory a block, bytes: compute capability 7.5
COMPILED_BY_CHECK = [cell for cell in matrix("ci") if cell.unit.source == exact_unit(DTYPES["float32"]).source]


@pytest.mark.parametrize("cell", COMPILED_BY_CHECK, ids=lambda cell: f"{cell.arch} {cell.label}")
def test_a_unit_compiles_without_spills(cell: Cell) -> None:
    binary = compile_unit(cell.unit, cell.arch)
    assert set(binary.symbols) == set(cell.unit.kernels)
    assert [row for row in binary.resources if row.spill_stores or row.spill_loads or row.stack] == []


def test_what_is_compiled_holds_every_architecture_and_every_unit() -> None:
    assert {cell.arch for cell in COMPILED_BY_CHECK} == set(ARCHITECTURES)
    units = {exact_unit(DTYPES[dtype]) for dtype in SHAPES}
    units |= {chosen_unit(DTYPES[dtype], kind) for dtype, kinds in CHOICES.items() for kind in kinds}
    assert {cell.unit for cell in COMPILED_BY_CHECK if cell.arch == "sm_90"} == units


@pytest.mark.parametrize("dtype", SHAPES)
def test_it_compiles_for_a_gpu_with_little_shared_memory(dtype: str) -> None:
    binary = compile_unit(exact_unit(DTYPES[dtype], SMALL), "sm_75")
    assert [row for row in binary.resources if row.spill_stores or row.spill_loads] == []


def test_every_float_has_its_unit() -> None:
    kernels = [kernel for unit in exact_units() for kernel in unit.kernels]
    dtypes = {match[1] for kernel in kernels if (match := re.match(r"exact<(\w+),", kernel))}
    assert dtypes == {name for name, row in DTYPES.items() if row.is_float}
    surveys = {kernel for kernel in kernels if kernel.startswith("survey<")}
    assert surveys == {f"survey<{dtype}, {kind}>" for dtype, kinds in CHOICES.items() for kind in kinds}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_no_instruction_flushes_subnormals(dtype: str) -> None:
    disassembler = shutil.which("cuobjdump")
    if disassembler is None:
        pytest.skip("needs cuobjdump of the CUDA toolkit")
    binary = compile_unit(exact_unit(DTYPES[dtype]), "sm_90")
    code = subprocess.run([disassembler, "-sass", str(binary.path)], capture_output=True, text=True, check=True).stdout
    assert "DADD" in code
    assert re.search(r"\bF(ADD|MUL|FMA|2F)\S*\.FTZ", code) is None
