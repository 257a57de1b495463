"""The page for those who change Warpfold names places that are there."""

import re
from collections import OrderedDict
from importlib.util import find_spec
from pathlib import Path
from unittest.mock import Mock

from tests.support import sharing

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "development.md").read_text(encoding="utf-8")


def test_every_place_exists() -> None:
    places = re.findall(r"`((?:app|benchmarks|client|contract|docs|kernels|src|tests|worker)/[\w./-]*)`", PAGE)
    assert len(places) > 20
    assert [place for place in places if not (ROOT / place).exists()] == []


def test_what_is_tested_first_or_as_a_whole_exists() -> None:
    named = (*sharing.WAITING, *sharing.COMPUTING, *sharing.WHOLE)
    assert [name for name in named if not (ROOT / name).exists()] == []


def test_some_processes_begin_with_tests_that_wait_and_others_with_those_that_compute() -> None:
    files = ["tests/app/test_db.py", "tests/client/test_jobs.py", "tests/drills/test_leader.py", "tests/browser/"]
    waiting, computing = Mock(), Mock()
    shared = sharing.WholeFiles(Mock(getvalue=Mock(return_value=["popen"] * 2)), Mock())
    shared.assigned_work = OrderedDict(((waiting, {}), (computing, {})))
    shared.registered_collections = dict.fromkeys(shared.assigned_work, files)
    shared.workqueue = OrderedDict((file, {file: False}) for file in sorted(files, key=sharing.rank))
    for node in (waiting, computing, computing, waiting):
        shared._assign_work_unit(node)
    assert list(shared.assigned_work[waiting]) == ["tests/browser/", "tests/client/test_jobs.py"]
    assert list(shared.assigned_work[computing]) == ["tests/app/test_db.py", "tests/drills/test_leader.py"], (
        "whoever has nothing left of its own helps with the other"
    )


def test_every_command_exists() -> None:
    modules = re.findall(r"python -m ([\w.]+)", PAGE)
    assert [module for module in modules if find_spec(module) is None] == []
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    assert set(re.findall(r"`make ([a-z-]+)`", PAGE)) <= set(targets)
