"""Machine code on disk, as several processes make and find it."""

import ast
import importlib
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numba.core.caching import IndexDataCacheFile

import warpfold.kernels.machine.jit as jit_module
from warpfold.kernels.machine.jit import _stamp, jit

DECORATORS = {"jit", "intrinsic", "overload"}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("numba.config.CACHE_DIR", str(tmp_path))
    return tmp_path


def first(x: Any) -> Any:
    return x[0]


def misses(compiled: Any) -> int:
    return sum(compiled.stats.cache_misses.values())


def test_what_one_process_compiled_another_loads() -> None:
    compiled, other = jit(first), jit(first)
    assert (compiled(np.array([7])), other(np.array([7]))) == (7, 7)
    assert (misses(compiled), misses(other)) == (1, 0)


def test_two_that_compile_at_the_same_time_never_load_each_others_code(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both have read an empty index. The second writes all of its own while the first is about to write its code."""
    write: Any = IndexDataCacheFile._save_data
    compiled: list[Any] = []

    def slowly(self: IndexDataCacheFile, name: str, data: Any) -> None:
        if not compiled:
            compiled.append(jit(first))
            compiled[0](np.array([-1], dtype=np.int32))
        write(self, name, data)

    with monkeypatch.context() as race:
        race.setattr(IndexDataCacheFile, "_load_index", lambda self: {})
        race.setattr(IndexDataCacheFile, "_save_data", slowly)
        jit(first)(np.array([-1], dtype=np.int16))
    third = jit(first)
    assert third(np.array([-1, 5], dtype=np.int32)) == -1
    assert third(np.array([-1, 5], dtype=np.int16)) == -1


def test_a_file_is_named_by_what_it_holds(folder: Path) -> None:
    for dtype in (np.int16, np.int32, np.float64):
        jit(first)(np.array([1], dtype=dtype))
    assert len({path.name for path in folder.rglob("*.nbc")}) == 3


def test_a_change_in_a_function_that_it_calls_has_it_compiled_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr("sys.dont_write_bytecode", True)
    (tmp_path / "called.py").write_text(
        "from warpfold.kernels.machine.jit import jit\n@jit\ndef step(x):\n    return x + 1\n"
    )
    (tmp_path / "caller.py").write_text(
        "from warpfold.kernels.machine.jit import jit\nfrom called import step\n"
        "@jit\ndef twice(x):\n    return step(step(x))\n"
    )

    def run() -> tuple[int, int]:
        for name in ("called", "caller"):
            monkeypatch.delitem(sys.modules, name, raising=False)
        _stamp.cache_clear()
        compiled: Any = importlib.import_module("caller").twice
        return compiled(5), misses(compiled)

    assert run() == (7, 1)
    assert run() == (7, 0)
    (tmp_path / "called.py").write_text(
        "from warpfold.kernels.machine.jit import jit\n@jit\ndef step(x):\n    return x * 3\n"
    )
    assert run() == (45, 1)


def test_copies_of_the_same_sources_share_machine_code_wherever_they_lie(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.dont_write_bytecode", True)
    counted = []
    for clone, step in (("one", 1), ("two", 1), ("three", 2)):
        folder = tmp_path / clone / "loops"
        folder.mkdir(parents=True)
        (folder / "shared_loop.py").write_text(
            f"from warpfold.kernels.machine.jit import jit\n@jit\ndef step(x):\n    return x + {step}\n"
        )
        with monkeypatch.context() as here:
            here.syspath_prepend(str(folder))
            here.delitem(sys.modules, "shared_loop", raising=False)
            compiled: Any = importlib.import_module("shared_loop").step
        counted.append((compiled(5), misses(compiled)))
    assert counted == [(6, 1), (6, 0), (7, 1)]


def test_compiled_functions_use_nothing_of_elsewhere_whose_change_is_not_noticed() -> None:
    kernels = Path(jit_module.__file__).parents[1]
    unnoticed = []
    for path in sorted(kernels.rglob("*.py")):
        text = path.read_text()
        if "machine.jit import" not in text:
            continue
        tree = ast.parse(text)
        elsewhere = {
            name.asname or name.name: str(node.module).removeprefix("warpfold.kernels.")
            for node in ast.walk(tree)
            if isinstance(node, ast.ImportFrom) and str(node.module).startswith("warpfold.kernels.")
            for name in node.names
            if not (path.parent / f"{str(node.module).rpartition('.')[2]}.py").exists()
        }
        compiled = [
            node
            for node in ast.walk(tree)
            if isinstance(node, ast.FunctionDef)
            and any(ast.unparse(each).partition("(")[0] in DECORATORS for each in node.decorator_list)
        ]
        used = {name.id for function in compiled for name in ast.walk(function) if isinstance(name, ast.Name)}
        files = {f"{elsewhere[name].replace('.', '/')}.py" for name in used & elsewhere.keys() - DECORATORS}
        unnoticed += [f"{path.relative_to(kernels)} uses {file}" for file in sorted(files - {*jit_module.FOR_ALL})]
    assert unnoticed == []
