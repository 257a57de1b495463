"""A name of a class means one thing in each of the house's folders: a reader who meets it need not ask which one.

Names with an underscore in front are private to their file.
"""

import ast
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDERS = ("app", "client", "contract", "kernels", "worker")


def classes_of(folder: Path) -> Mapping[str, list[str]]:
    """The files in which each public class of `folder` is defined, by its name."""
    places: defaultdict[str, list[str]] = defaultdict(list)
    for path in sorted(folder.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].append(str(path.relative_to(folder.parent)))
    return places


def repeated(folder: Path) -> dict[str, list[str]]:
    """The names that several classes of `folder` share, with the files of these."""
    return {name: places for name, places in classes_of(folder).items() if len(places) > 1}


@pytest.mark.parametrize("folder", FOLDERS)
def test_a_class_name_occurs_once_in_a_folder(folder: str) -> None:
    assert len(classes_of(ROOT / folder)) > 10
    assert repeated(ROOT / folder) == {}


def test_a_name_in_two_files_is_found(tmp_path: Path) -> None:
    for name in ("one.py", "other.py"):
        (tmp_path / name).write_text("class Shape: ...\nclass _Private: ...\n", encoding="utf-8")
    assert list(repeated(tmp_path)) == ["Shape"]
