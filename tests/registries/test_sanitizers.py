"""`python -m tests.support.gpu.sanitize` watches all kernels, without being told of each module."""

import stat
import sys
from pathlib import Path

import pytest

from tests.support.gpu import sanitize

TOOL = """#!/bin/sh
echo "$@" >> "$(dirname "$0")/calls"
echo "7 reductions of nothing"
echo "========= ERROR SUMMARY: 0 errors"
case "$*" in *watched_keyed*) exit 9;; esac
"""


@pytest.fixture
def calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file where a stand-in for compute-sanitizer writes down its calls; it finds something in `watched_keyed`."""
    tool = tmp_path / "compute-sanitizer"
    tool.write_text(TOOL)
    tool.chmod(tool.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    return tmp_path / "calls"


def test_every_module_is_watched_by_every_tool(calls: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["sanitize"])
    assert sanitize.main() == 1
    folder = Path(sanitize.__file__).parent
    modules = {path.stem for path in folder.glob("watched*.py")}
    assert {"watched", "watched_groups", "watched_keyed"} <= modules
    ran = {(line.split()[1], line.rsplit(".", 1)[1]) for line in calls.read_text().splitlines()}
    assert ran == {(tool, module) for tool in sanitize.TOOLS for module in modules}


def test_named_strategies_run_alone(calls: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["sanitize", "tree", "--tools", "memcheck"])
    assert sanitize.main() == 0
    (line,) = calls.read_text().splitlines()
    assert line.endswith("tests.support.gpu.watched tree")
