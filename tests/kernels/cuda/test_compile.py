"""CUDA sources become machine code without a GPU, and are compiled once."""

import json
from pathlib import Path

import pytest

from warpfold.kernels.cuda.compile import (
    ARCHITECTURES,
    CompileError,
    Resources,
    Unit,
    arch_of,
    compile_unit,
    nvrtc_version,
    parse_resources,
    sources_of,
)
from warpfold.kernels.errors import Unavailable

SOURCE = """
#include "scale.cuh"
template <class T>
__global__ void scale(T* data, T factor) { data[threadIdx.x] = scaled(data[threadIdx.x], factor); }
"""
HEADER = """
#pragma once
template <class T>
__device__ T scaled(T x, T factor) { return x * factor; }
"""


@pytest.fixture
def unit(tmp_path: Path) -> Unit:
    """A template kernel of two types, with a header of its own."""
    (tmp_path / "scale.cu").write_text(SOURCE)
    (tmp_path / "scale.cuh").write_text(HEADER)
    return Unit(tmp_path / "scale.cu", ("scale<float>", "scale<double>"))


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "cache"


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_a_unit_compiles_for_every_architecture(unit: Unit, cache: Path, arch: str) -> None:
    binary = compile_unit(unit, arch, cache)
    assert binary.path.read_bytes()[:4] == b"\x7fELF"
    assert list(binary.symbols) == list(unit.kernels)
    assert [row.kernel for row in binary.resources] == list(unit.kernels)
    assert all(row.registers > 0 and row.spill_stores == 0 for row in binary.resources)
    # A symbol that is not in the code could not be loaded.
    assert all(symbol.encode() in binary.path.read_bytes() for symbol in binary.symbols.values())


def test_what_was_compiled_is_taken_from_the_cache(unit: Unit, cache: Path) -> None:
    first = compile_unit(unit, "sm_90", cache)
    written = first.path.stat().st_mtime_ns
    second = compile_unit(unit, "sm_90", cache)
    assert (first.cached, second.cached) == (False, True)
    assert (second.path, second.symbols, second.resources) == (first.path, first.symbols, first.resources)
    assert second.path.stat().st_mtime_ns == written


def test_a_changed_header_source_kernel_list_or_architecture_is_compiled_anew(unit: Unit, cache: Path) -> None:
    paths = {compile_unit(unit, "sm_90", cache).path, compile_unit(unit, "sm_80", cache).path}
    paths.add(compile_unit(Unit(unit.source, unit.kernels[:1]), "sm_90", cache).path)
    header = unit.source.with_name("scale.cuh")
    header.write_text(HEADER.replace("x * factor", "factor * x"))
    paths.add(compile_unit(unit, "sm_90", cache).path)
    unit.source.write_text(SOURCE + "\n")
    paths.add(compile_unit(unit, "sm_90", cache).path)
    assert len(paths) == 5
    header.write_text(HEADER)
    unit.source.write_text(SOURCE)
    assert compile_unit(unit, "sm_90", cache).cached


def test_the_assembler_reports_however_often_the_same_is_compiled(unit: Unit, tmp_path: Path) -> None:
    first, second = (compile_unit(unit, "sm_90", tmp_path / name) for name in ("one", "two"))
    assert not second.cached
    assert first.resources == second.resources


def test_headers_are_followed_through_headers(tmp_path: Path) -> None:
    (tmp_path / "a.cu").write_text('#include "b.cuh"\n')
    (tmp_path / "b.cuh").write_text('#include "c.cuh"\n#include "b.cuh"\n')
    (tmp_path / "c.cuh").write_text("#pragma once\n")
    assert sorted(path.name for path in sources_of(tmp_path / "a.cu")) == ["a.cu", "b.cuh", "c.cuh"]


def test_a_half_written_entry_is_not_taken(unit: Unit, cache: Path) -> None:
    binary = compile_unit(unit, "sm_90", cache)
    binary.path.with_suffix(".json").unlink()
    again = compile_unit(unit, "sm_90", cache)
    assert not again.cached
    assert json.loads(again.path.with_suffix(".json").read_text())["symbols"] == dict(binary.symbols)


def test_nothing_but_finished_entries_stays_in_the_cache(unit: Unit, cache: Path) -> None:
    compile_unit(unit, "sm_90", cache)
    assert sorted(path.suffix for path in cache.iterdir()) == [".cubin", ".json"]
    assert not [path for path in cache.iterdir() if path.name.startswith(".")]


def test_an_error_shows_the_compilers_log(unit: Unit, cache: Path) -> None:
    unit.source.write_text("template <class T> __global__ void scale(T* data, T) { *data = missing; }")
    with pytest.raises(CompileError, match=r'scale\.cu does not compile for sm_90[\s\S]*"missing" is undefined'):
        compile_unit(unit, "sm_90", cache)
    assert not cache.exists()


def test_a_missing_header_is_the_compilers_to_report(unit: Unit, cache: Path) -> None:
    unit.source.with_name("scale.cuh").unlink()
    with pytest.raises(CompileError, match=r"scale\.cuh"):
        compile_unit(unit, "sm_90", cache)


def test_a_kernel_that_is_not_in_the_source_is_an_error(unit: Unit, cache: Path) -> None:
    with pytest.raises(CompileError, match="shrink"):
        compile_unit(Unit(unit.source, ("shrink<float>",)), "sm_90", cache)


def test_an_architecture_unknown_to_the_compiler_is_unavailable(unit: Unit, cache: Path) -> None:
    with pytest.raises(Unavailable, match="does not know the architecture sm_42"):
        compile_unit(unit, "sm_42", cache)


def test_products_and_sums_are_not_fused_unless_asked(tmp_path: Path, cache: Path) -> None:
    sizes = []
    for name, step in (("apart", "y * x[k] + x[k + 64]"), ("fused", "__fmaf_rn(y, x[k], x[k + 64])")):
        source = tmp_path / f"{name}.cu"
        source.write_text(
            "__global__ void f(float* x) { float y = x[0];\n#pragma unroll\n"
            f"for (int k = 0; k < 64; ++k) y = {step}; x[0] = y; }}"
        )
        sizes.append(compile_unit(Unit(source, ("f",)), "sm_90", cache).path.stat().st_size)
    # 64 multiplications that the other does without, of 16 bytes each
    assert sizes[0] - sizes[1] > 64 * 16 // 2


def test_a_compute_capability_names_its_architecture() -> None:
    assert (arch_of("7.5"), arch_of("9.0"), arch_of("12.0")) == ("sm_75", "sm_90", "sm_120")


def test_the_compiler_tells_its_version() -> None:
    major, minor = map(int, nvrtc_version().split("."))
    assert (major, minor) >= (12, 8)


def test_the_assemblers_report_is_read() -> None:
    log = """ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function '_Z1b' for 'sm_90'
ptxas info    : Function properties for _Z1b
    16 bytes stack frame, 4 bytes spill stores, 8 bytes spill loads
ptxas info    : Used 40 registers, used 1 barriers, 528 bytes smem
ptxas info    : Compiling entry function '_Z1a' for 'sm_90'
ptxas info    : Function properties for _Z1a
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 8 registers, used 0 barriers
"""
    assert parse_resources(log, {"a": "_Z1a", "b": "_Z1b"}) == (
        Resources("a", 8, 0, 0, 0, 0),
        Resources("b", 40, 528, 16, 4, 8),
    )
    with pytest.raises(CompileError, match="reported nothing about c"):
        parse_resources(log, {"c": "_Z1c"})
