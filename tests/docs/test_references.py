"""Files, decisions and settings that documents, comments and errors name exist."""

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from warpfold.app.config import Settings
from warpfold.client import settings as client_settings
from warpfold.contract.settings_file import VARIABLE

ROOT = Path(__file__).parents[2]
SUFFIXES = frozenset((".py", ".md", ".toml", ".yml", ".html", ".js", ".jinja", ".cu", ".cuh", ".sh", ".sql", ".env"))
NO_TEXT_OF_OURS = ("CHANGELOG.md", "docs/reports/", "tests/", "docs/operations/licences.md")
"""The change log names what once was, reports and the page of licences are generated, and tests make up places."""
MADE_LATER = frozenset(("deploy/images.lock", "deploy/secrets/redis.acl"))
"""Files that a command makes in a checkout."""

_FOLDERS = "app|benchmarks|client|contract|deploy|docs|kernels|migrations|tests|worker"
_ENDINGS = "|".join([*(suffix[1:] for suffix in SUFFIXES), "csv", "lock", "acl"])
_PLACE = re.compile(rf"(?<![\w/.-])(?:{_FOLDERS})/(?:[\w.@-]+/)*[\w.@-]+\.(?:{_ENDINGS})\b")
_DECISION = re.compile(r"(?:\.\./|docs/)*decisions/(\d{4}[\w-]*)(\.md)?")
_SETTING = re.compile(r"\bWARPFOLD_([A-Z][A-Z0-9_]*[A-Z0-9])\b")


def texts() -> Iterator[tuple[str, int, str]]:
    """The lines of all tracked texts: the file, the number of the line, and the line."""
    tracked = subprocess.run(["git", "ls-files"], cwd=ROOT, check=True, capture_output=True, text=True).stdout.split()
    for name in tracked:
        path = ROOT / name
        if not name.startswith(NO_TEXT_OF_OURS) and path.is_file() and (path.suffix in SUFFIXES or name == "Makefile"):
            for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
                yield name, number, line


def settings() -> set[str]:
    """The variables that something of ours reads: the service, the client, and the files of deployment."""
    names = {name.upper() for name in Settings.model_fields}
    names |= {f"{name}_FILE" for name in names} | {"NAME", "NAME_FILE"}  # NAME stands for any of them
    names |= {variable.removeprefix("WARPFOLD_") for variable in (client_settings.URL, client_settings.TOKEN, VARIABLE)}
    deployment = [ROOT / "docker-compose.yml", ROOT / "deploy" / "check-images.sh"]
    for file in deployment:
        names |= set(re.findall(r"\$\{WARPFOLD_([A-Z_]+)", file.read_text(encoding="utf-8")))
    return names


def test_every_place_that_a_text_names_is_there() -> None:
    dead = [
        f"{file}:{number}: {place}"
        for file, number, line in texts()
        for place in _PLACE.findall(line)
        if place not in MADE_LATER and "NAME" not in place and not (ROOT / place).exists()
    ]
    assert dead == []


def test_every_decision_is_cited_by_the_name_of_its_file() -> None:
    """A number alone could stand for another decision than the one that is meant, and did."""
    decisions = {path.stem for path in (ROOT / "docs" / "decisions").glob("*.md")}
    wrong = [
        f"{file}:{number}: {name}"
        for file, number, line in texts()
        for name, _ in _DECISION.findall(line)
        if name not in decisions
    ]
    assert wrong == []


def test_every_setting_that_a_text_names_is_read_by_something() -> None:
    known = settings()
    unread = [
        f"{file}:{number}: WARPFOLD_{name}"
        for file, number, line in texts()
        for name in _SETTING.findall(line)
        if name not in known
    ]
    assert unread == []


@pytest.mark.parametrize(
    "text", ["see `app/jobs/changes.py`", "# docs/decisions/0011-no.md", "(kernels/cuda/strategies/own.py)"]
)
def test_places_are_told_from_other_words(text: str) -> None:
    assert len(_PLACE.findall(text)) == 1
