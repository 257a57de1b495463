"""The exact accumulator compiles for every architecture, without a GPU, and keeps its promises about arithmetic.

Units come from the user's cache where it holds them, as in the service: `make check` has compiled some before.
"""

import re
import shutil
import subprocess

import pytest

from warpfold.kernels.cuda.compile import ARCHITECTURES, compile_unit
from warpfold.kernels.cuda.exact import SHAPES, SumKind, exact_unit, exact_units
from warpfold.kernels.cuda.exact.shapes import CHOICES, chosen_unit
from warpfold.kernels.dtypes import DTYPES

SMALL = 64 << 10  # shared memory a block, bytes: compute capability 7.5


@pytest.mark.parametrize("arch", ARCHITECTURES)
@pytest.mark.parametrize("dtype", SHAPES)
def test_it_compiles_without_spills(dtype: str, arch: str) -> None:
    binary = compile_unit(exact_unit(DTYPES[dtype]), arch)
    assert len(binary.symbols) == len(SumKind)
    assert [row for row in binary.resources if row.spill_stores or row.spill_loads or row.stack] == []


@pytest.mark.parametrize("dtype", SHAPES)
def test_it_compiles_for_a_gpu_with_little_shared_memory(dtype: str) -> None:
    binary = compile_unit(exact_unit(DTYPES[dtype], SMALL), "sm_75")
    assert [row for row in binary.resources if row.spill_stores or row.spill_loads] == []


@pytest.mark.parametrize(("dtype", "kind"), [(dtype, kind) for dtype, kinds in CHOICES.items() for kind in kinds])
@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_squares_of_wide_data_compile_without_spills(arch: str, dtype: str, kind: SumKind) -> None:
    binary = compile_unit(chosen_unit(DTYPES[dtype], kind), arch)
    assert [row for row in binary.resources if row.spill_stores or row.spill_loads or row.stack] == []


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
