"""What `benchmarks.house` counts of a small checkout made for the test; and this one is held to its targets."""

import gc
import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

import pytest

from benchmarks.house import ROOT, House

MOST_SMALL_MODULES = 10
"""How many modules of less than 70 lines may have exactly one importer."""
MOST_FILES_ON_THE_WALK = 25
"""How many files of ours one reduction passes by the page on the architecture."""
MOST_PLACES = {
    "kind of job": 4,
    "op": 4,
    "strategy on a GPU": 2,
    "source of elements": 3,
    "dtype": 4,
    "measured column": 1,
}
"""How many files a new one may touch: of a strategy, its file and its rows in `resources.csv`."""
SOURCES = {
    "app/__init__.py": "",
    "app/main.py": "from warpfold.app.room import thing, other\n"
    "def late() -> None:\n    from warpfold.app import lazily\n",
    "app/lazily.py": "import warpfold.app.loner\n",
    "app/loner.py": "class Twice: ...\nclass _Private: ...\n",
    "app/long.py": "x = 1\n" * 401,
    "app/room/__init__.py": "from warpfold.app.room.things import other, thing\n\n__all__ = ['other', 'thing']\n",
    "app/room/things.py": "class Twice: ...\nclass _Private: ...\nthing = other = 1\n",
    "app/user.py": "from warpfold.app.room.things import thing\nfound = thing\ndef take(one: int) -> None: ...\n"
    "class Box:\n    def _told(self) -> None:\n        self._said = thing\n",
    "migrations/versions/0001_first.py": "from warpfold.app.loner import Twice\n",
    "tests/app/room/test_things.py": "from tests.app.test_user import helper\n",
    "tests/app/test_user.py": "",
    "tests/app/test_nothing.py": "from tests.support import things\n",
    "tests/app/test_room.py": "",
    "tests/client/every_way/test_numbers.py": "",
    "kernels/include/header.cuh": "",
    "tests/kernels/include/test_header.py": "",
    "tests/drills/test_everything.py": "",
    "docs/architecture.md": "\n## The walk of a job\n`app/main.py` `app/room/things.py` `Thing` `Thing`\n"
    "## The way of a job that waits\n`app/main.py` `app/long.py` `Other`\n## `More`\n",
}


@pytest.fixture
def house(tmp_path: Path) -> House:
    for name, text in SOURCES.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return House(tmp_path)


def test_a_name_counts_as_imported_from_where_it_is_defined(house: House) -> None:
    assert house.importers["app.room.things"] == {"app.main", "app.user"}
    assert house.importers["app.room"] == set()


def test_lazy_imports_count_and_so_do_plain_ones(house: House) -> None:
    assert house.importers["app.lazily"] == {"app.main"}
    assert house.importers["app.loner"] == {"app.lazily"}, "a revision of the schema is no module of the house"
    assert house.single_importer() == ["app.lazily", "app.loner"]


def test_long_modules_and_repeated_classes_are_named(house: House) -> None:
    figures = house.figures()
    assert figures.over_400_lines == ["app.long: 401"]
    assert figures.repeated_class_names == ["Twice: app.loner, app.room.things"]
    assert figures.walk_by_the_architecture == ["app/main.py", "app/room/things.py"]
    assert figures.carriers_by_the_architecture == ["Thing"]
    assert figures.files_for_a_job_that_waits == ["app/long.py"]
    assert figures.carriers_of_a_job_that_waits == ["Thing", "Other"]
    assert figures.vague_variables == [
        "app/user.py: _said",
        "app/user.py: _told",
        "app/user.py: found",
        "app/user.py: one",
    ]


def test_a_test_mirrors_the_module_of_its_path(house: House) -> None:
    figures = house.figures()
    assert (figures.tests, figures.tests_that_mirror, figures.modules_with_a_mirrored_test) == (5, 4, 2)
    assert house.mirrored(Path("app/test_room.py")) == "app.room", "a package is tested beside its folder"
    assert house.mirrored(Path("kernels/include/test_header.py")) == "kernels/include/header.cuh"
    assert figures.tests_that_mirror_nothing == ["app/test_nothing.py"]
    assert figures.tests_of_behaviour == 2, "drills and numbers by every way mirror no module"
    assert figures.tests_imported_by_others == ["tests/app/room/test_things.py: tests.app.test_user"]


def test_the_command_prints_the_figures_as_json(house: House) -> None:
    command = [sys.executable, "-m", "benchmarks.house", "--json", "--root", str(house.root)]
    done = subprocess.run(command, check=True, capture_output=True, text=True, cwd=ROOT)
    assert json.loads(done.stdout) == json.loads(json.dumps(asdict(house.figures())))


@pytest.fixture(scope="module")
def ours() -> Iterator[House]:
    """This checkout. The syntax of its files is no garbage, and to look for some in it takes longer than all else."""
    gc.disable()
    yield House(ROOT)
    gc.enable()


def test_every_folder_of_the_house_is_counted(ours: House) -> None:
    assert set(ours.folders()) == {"app", "client", "contract", "engines", "kernels", "migrations", "worker"}


def test_no_module_has_more_than_400_lines(ours: House) -> None:
    assert ours.over_400_lines() == []


def test_a_class_name_occurs_once_in_a_folder(ours: House) -> None:
    assert ours.repeated_classes() == []


def test_no_test_is_imported_and_what_tests_share_stands_in_support(ours: House) -> None:
    assert ours.tests_imported() == []
    apart = [
        str(path.relative_to(ROOT))
        for path in sorted((ROOT / "tests").rglob("*.py"))
        if path.relative_to(ROOT).parts[1] not in ("support", "data")
        and not path.name.startswith("test_")
        and path.name not in ("__init__.py", "conftest.py")
    ]
    assert apart == []


def test_every_test_mirrors_what_it_tests_or_stands_in_a_folder_that_mirrors_nothing(ours: House) -> None:
    assert ours.tests_that_mirror_nothing() == [], "docs/development.md says where a test stands"


def test_few_small_modules_have_a_single_importer(ours: House) -> None:
    single = ours.single_importer()
    assert len(single) <= MOST_SMALL_MODULES, f"merge one of these into what uses it: {', '.join(single)}"


def test_every_variable_and_function_is_named_after_what_it_holds_or_returns(ours: House) -> None:
    assert ours.vague_variables() == []


def test_the_walk_of_a_job_is_short(ours: House) -> None:
    assert len(ours.walk_by_the_architecture()) <= MOST_FILES_ON_THE_WALK


def test_a_new_row_of_a_registry_touches_few_files(ours: House) -> None:
    places = ours.places_of_a_new()
    assert {name: places[name] for name in MOST_PLACES if not 1 <= places[name] <= MOST_PLACES[name]} == {}
