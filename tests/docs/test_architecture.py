"""The page of the architecture names places that are there, and passes every one of the house's folders.

A file that was moved is named with where its name is found now: the page is then mended by hand, in a minute.
"""

import re
from pathlib import Path

from benchmarks.house import House

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "architecture.md"
FOLDERS = ("app", "client", "contract", "engines", "kernels", "migrations", "worker")
_PLACE = re.compile(rf"`((?:{'|'.join((*FOLDERS, 'docs', 'src', 'tests'))})/[^`\s]*)`")


def missing(text: str) -> list[str]:
    """Each place of `text` that is not there, with the places of the same name that are."""
    wrong = []
    for place in dict.fromkeys(_PLACE.findall(text)):
        if (ROOT / place).exists():
            continue
        name = Path(place).name
        now = sorted(
            str(path.relative_to(ROOT)) for folder in FOLDERS for path in (ROOT / folder).rglob(name) if name != ""
        )
        wrong.append(f"{place} is not there; of its name: {', '.join(now) or 'none'}")
    return wrong


def walk(title: str) -> str:
    """A section of the page."""
    return PAGE.read_text(encoding="utf-8").split(f"\n## {title}\n")[1].split("\n## ")[0]


def test_every_place_of_the_page_exists() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert len(_PLACE.findall(text)) > 40
    assert missing(text) == []


def test_a_file_that_moved_is_named_with_its_new_place() -> None:
    assert missing("`kernels/gone/dispatcher.py` and `app/config.py`") == [
        "kernels/gone/dispatcher.py is not there; of its name: worker/dispatcher.py"
    ]
    assert missing("`app/never_was.py`") == ["app/never_was.py is not there; of its name: none"]


def test_every_class_that_carries_a_job_exists() -> None:
    house = House(ROOT)
    defined = "\n".join(path.read_text(encoding="utf-8") for path in house.modules.values())
    carriers = house.carriers_by_the_architecture()
    waiting = house.carriers_of_a_job_that_waits()
    assert len(carriers) == 8, "a job changes hands no more often than it must"
    assert [name for name in waiting if name not in carriers] == ["HandOver"], "what the dispatcher adds"
    assert len(house.walk_by_the_architecture()) <= 25
    assert len(house.files_for_a_job_that_waits()) <= 4
    assert [name for name in waiting if not re.search(rf"^class {name}\b", defined, re.MULTILINE)] == []


def test_the_walks_pass_the_folders_that_a_job_and_a_kernel_pass() -> None:
    job, kernel = _PLACE.findall(walk("The walk of a job")), _PLACE.findall(walk("The walk of a kernel"))
    assert {place.split("/")[0] for place in job} == {"app", "client", "contract", "worker"}
    assert {place.split("/")[0] for place in kernel} == {"kernels"}
    assert min(len(job), len(kernel)) >= 15
    whole = PAGE.read_text(encoding="utf-8")
    assert [folder for folder in FOLDERS if f"`{folder}/" not in whole] == []
