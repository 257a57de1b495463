"""The page for those who change Warpfold names places that are there."""

import re
from importlib.util import find_spec
from pathlib import Path

from tests.support import sharing

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "development.md").read_text(encoding="utf-8")


def test_every_place_exists() -> None:
    places = re.findall(r"`((?:app|benchmarks|client|contract|docs|kernels|src|tests|worker)/[\w./-]*)`", PAGE)
    assert len(places) > 20
    assert [place for place in places if not (ROOT / place).exists()] == []


def test_what_is_tested_first_or_as_a_whole_exists() -> None:
    assert [name for name in (*sharing.FIRST, *sharing.WHOLE) if not (ROOT / name).exists()] == []


def test_every_command_exists() -> None:
    modules = re.findall(r"python -m ([\w.]+)", PAGE)
    assert [module for module in modules if find_spec(module) is None] == []
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    assert set(re.findall(r"`make ([a-z-]+)`", PAGE)) <= set(targets)
