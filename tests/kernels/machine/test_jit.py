"""Machine code on disk, as several processes make and find it."""

import importlib
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numba.core.caching import IndexDataCacheFile

from warpfold.kernels.machine.jit import _stamp, jit


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
