"""The command that compiles everything."""

from pathlib import Path

import pytest

from warpfold.kernels.cuda import compile_all
from warpfold.kernels.cuda.compile import Unit
from warpfold.kernels.cuda.compile_all import compile_cell, main
from warpfold.kernels.cuda.matrix import Cell
from warpfold.kernels.cuda.staging.generator import generator_unit
from warpfold.kernels.dtypes import DTYPES


def test_an_unknown_architecture_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(["--arch", "sm_42"])
    assert stopped.value.code == 2
    assert "known: ci, all, sm_75" in capsys.readouterr().err


def test_the_command_prints_a_line_a_unit_and_succeeds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    cell = Cell(generator_unit(DTYPES["int8"]), "sm_90", "generate int8")
    monkeypatch.setattr(compile_all, "matrix", lambda _: [cell])
    command = ["--cache", str(tmp_path), "--table", str(tmp_path / "table.csv"), "--jobs", "1"]
    assert main([*command, "--update-table"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split()[:3] == ["arch", "kernels", "of"]
    assert lines[1].startswith("sm_90    generate int8")
    assert lines[2].startswith("5 kernels in 1 units for 1 architectures")
    assert main([*command, "--quiet"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 1


def test_a_source_that_does_not_compile_fails_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    broken = tmp_path / "broken.cu"
    broken.write_text("__global__ void f() { nonsense }")
    monkeypatch.setattr(compile_all, "matrix", lambda _: [Cell(Unit(broken, ("f",)), "sm_90", "broken")])
    assert main(["--cache", str(tmp_path / "cache"), "--jobs", "1", "--quiet"]) == 1
    assert "DOES NOT COMPILE" in capsys.readouterr().out


def test_a_fault_is_kept_with_its_cell(tmp_path: Path) -> None:
    broken = tmp_path / "broken.cu"
    broken.write_text("__global__ void f() { nonsense }")
    compiled = compile_cell(Cell(Unit(broken, ("f",)), "sm_90", "broken"), tmp_path)
    assert compiled.binary is None
    assert "nonsense" in compiled.fault
