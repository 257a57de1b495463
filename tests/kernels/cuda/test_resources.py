"""The committed table of what kernels take is complete, and a kernel that takes more is seen."""

from pathlib import Path

import pytest

from warpfold.kernels.cuda import compile_all
from warpfold.kernels.cuda.compile import Resources, Unit
from warpfold.kernels.cuda.compile_all import main
from warpfold.kernels.cuda.matrix import Cell, matrix
from warpfold.kernels.cuda.resources import Change, Table, Usage, changes, read_table, updated, write_table

PLAIN, WIDE = ("plain", "sm_90"), ("wide<int, 2>", "sm_90")
KNOWN = {PLAIN: None, WIDE: None}
TABLE = Table("13.4", {PLAIN: Usage(32, 128), WIDE: Usage(255, 0, 16)})
SPILLING = (
    'extern "C" __global__ void __launch_bounds__(1024, 2) spilling(double* x) { double y[40];\n'
    "#pragma unroll\nfor (int k = 0; k < 40; ++k) y[k] = x[k * 1024];\n__syncthreads();\n"
    "#pragma unroll\nfor (int k = 0; k < 40; ++k) x[k * 1024] = y[39 - k]; }"
)


def test_the_committed_table_has_every_kernel_that_the_checks_compile_and_only_kernels_that_exist() -> None:
    kernels = [(kernel, cell.arch) for cell in matrix("all") for kernel in cell.unit.kernels]
    assert len(set(kernels)) == len(kernels)
    compiled = {(kernel, cell.arch) for cell in matrix("ci") for kernel in cell.unit.kernels}
    assert compiled <= set(read_table().usages) <= set(kernels)


def test_no_committed_kernel_spills() -> None:
    assert [key for key, usage in read_table().usages.items() if usage.spills] == []


def test_a_table_comes_back_as_it_was_written(tmp_path: Path) -> None:
    write_table(TABLE, tmp_path / "table.csv")
    lines = (tmp_path / "table.csv").read_text().splitlines()
    assert lines[1:] == ["plain,,,,,32/128,,", '"wide<int, 2>",,,,,255/0/16,,']
    assert read_table(tmp_path / "table.csv") == TABLE


def test_usage_is_read_from_the_assemblers_report() -> None:
    assert Usage.of(Resources("f", 40, 528, 16, 4, 8)) == Usage(40, 528, 12)


def test_the_same_kernels_are_no_change() -> None:
    assert changes(TABLE, "13.4", TABLE.usages, KNOWN) == []


def test_what_was_not_compiled_is_not_compared() -> None:
    assert changes(TABLE, "13.4", {PLAIN: Usage(32, 128)}, KNOWN) == []


def test_registers_memory_and_spills_that_change_are_told() -> None:
    measured = {PLAIN: Usage(33, 128, 4), WIDE: Usage(255, 0, 8)}
    assert [str(change) for change in changes(TABLE, "13.4", measured, KNOWN)] == [
        "sm_90 plain: 32/128 → 33/128/4 SPILLS",
        "sm_90 wide<int, 2>: 255/0/16 → 255/0/8",
    ]


def test_kernels_that_come_and_go_are_told() -> None:
    new = ("new", "sm_80")
    assert changes(TABLE, "13.4", {new: Usage(8, 0)}, {PLAIN: None, new: None}) == [
        Change(new, None, Usage(8, 0)),
        Change(WIDE, Usage(255, 0, 16), None),
    ]


def test_with_another_compiler_only_new_spills_count() -> None:
    measured = {PLAIN: Usage(40, 256), WIDE: Usage(255, 0, 16), ("new", "sm_80"): Usage(255, 0, 4)}
    assert [change.key for change in changes(TABLE, "12.9", measured, {})] == [("new", "sm_80")]


def test_a_part_is_updated_and_the_rest_stays() -> None:
    usages = updated(TABLE, "13.4", {PLAIN: Usage(30, 128)}, KNOWN, KNOWN).usages
    assert usages == {PLAIN: Usage(30, 128), WIDE: Usage(255, 0, 16)}


def test_what_is_gone_leaves_the_table() -> None:
    assert updated(TABLE, "13.4", {}, {PLAIN: None}, [PLAIN]).usages == {PLAIN: Usage(32, 128)}


def test_a_table_is_of_one_compiler_and_whole() -> None:
    with pytest.raises(ValueError, match=r"would lack 1 kernels, such as \('wide<int, 2>', 'sm_90'\)"):
        updated(TABLE, "12.9", {PLAIN: Usage(32, 128)}, KNOWN, KNOWN)


def test_what_the_checks_do_not_compile_may_be_missing() -> None:
    assert updated(TABLE, "12.9", {PLAIN: Usage(32, 128)}, KNOWN, [PLAIN]).usages == {PLAIN: Usage(32, 128)}


def test_the_command_writes_the_table_and_then_agrees_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    source = tmp_path / "spilling.cu"
    source.write_text(SPILLING)
    monkeypatch.setattr(compile_all, "matrix", lambda _: [Cell(Unit(source, ("spilling",)), "sm_90", "spilling")])
    command = ["--cache", str(tmp_path / "cache"), "--table", str(tmp_path / "table.csv"), "--jobs", "1", "--quiet"]
    assert main(command) == 1
    printed = capsys.readouterr().out
    assert "sm_90 spilling: nothing → 32/0/" in printed
    assert "SPILLS" in printed
    assert "--update-table" in printed
    assert main([*command, "--update-table"]) == 0
    assert main(command) == 0
