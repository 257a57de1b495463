"""The index of decisions names every decision, with its date and what became of it."""

import re
from collections.abc import Mapping
from pathlib import Path

DECISIONS = Path(__file__).parents[2] / "docs" / "decisions"
_ROW = re.compile(
    r"\| (?P<number>\d+) \| \[(?P<title>.*)\]\((?P<file>[\w-]+\.md)\) \| \d{4}-\d\d-\d\d \| (?P<status>.*) \|"
)
_REPLACED = re.compile(r"Replaced by \[(?P<number>\d+)\]\((?P<file>[\w-]+\.md)\)")


def rows() -> Mapping[str, re.Match[str]]:
    """The rows of the index, by the file that they name."""
    lines = (DECISIONS / "README.md").read_text().splitlines()
    return {row["file"]: row for row in map(_ROW.fullmatch, lines) if row is not None}


def headings() -> Mapping[str, tuple[int, str]]:
    """The number and the title of each decision, by its file."""
    titles = {}
    for page in sorted(DECISIONS.glob("0*.md")):
        number, title = page.read_text().splitlines()[0].removeprefix("# ").split(". ", 1)
        titles[page.name] = int(number), title
    return titles


def test_every_decision_has_its_row_with_its_title() -> None:
    assert {name: (int(row["number"]), row["title"]) for name, row in rows().items()} == headings()


def test_what_replaced_a_decision_stands() -> None:
    by_file = rows()
    for name, row in by_file.items():
        if row["status"] != "Accepted":
            replaced = _REPLACED.fullmatch(row["status"])
            assert replaced, f"{name} is {row['status']}"
            assert by_file[replaced["file"]]["status"] == "Accepted"
            assert int(replaced["number"]) == int(by_file[replaced["file"]]["number"])
            assert f"Replaced by [decision {replaced['number']}]({replaced['file']})" in (DECISIONS / name).read_text()
