"""A release is built from images named by their digests, which come from the registries and from nowhere else."""

import hashlib
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

DEPLOY = Path(__file__).parents[2] / "deploy"
IMAGES = {"PYTHON_IMAGE": "python:3.12", "REDIS_IMAGE": "redis:8"}
MANIFESTS = {image: f'{{"schemaVersion": 2, "of": "{image}"}}' for image in IMAGES.values()}
DIGESTS = {image: f"sha256:{hashlib.sha256(text.encode()).hexdigest()}" for image, text in MANIFESTS.items()}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    lines = [f"{name}={image}" for name, image in IMAGES.items()]
    (tmp_path / "images.env").write_text("\n".join(["# two images", *lines]) + "\n")
    return tmp_path


def registry(tmp_path: Path, program: str, known: dict[str, str]) -> Path:
    """A folder with a program that answers as `program` does when it has asked the registry."""
    programs = tmp_path / f"with-{program}"
    programs.mkdir()
    for tool in ("bash", "cat", "chmod", "date", "dirname", "mktemp", "mv", "rm", "sed", "sha256sum"):
        (programs / tool).symlink_to(str(shutil.which(tool)))
    cases = "\n".join(f"  *{image}) printf '%s' '{answer}' ;;" for image, answer in known.items())
    script = programs / program
    script.write_text(
        f'#!/bin/bash\nfor last; do :; done\ncase $last in\n{cases}\n  *) echo "no such image" >&2; exit 1 ;;\nesac\n'
    )
    script.chmod(0o755)
    return programs


def pin(folder: Path, programs: Path) -> "subprocess.CompletedProcess[str]":
    words = [str(DEPLOY / "pin-images.sh"), str(folder)]
    return subprocess.run(words, env={"PATH": str(programs)}, capture_output=True, text=True, check=False)


def check(folder: Path, version: str = "0.1.0") -> list[str]:
    """What the check complains of; nothing if the release may be built."""
    words = [str(DEPLOY / "check-images.sh"), str(folder)]
    environment = {**os.environ, "WARPFOLD_VERSION": version}
    done = subprocess.run(words, env=environment, capture_output=True, text=True, check=False)
    complaints = [line.removeprefix("check-images.sh: ") for line in done.stderr.splitlines()]
    assert done.returncode == (1 if complaints else 0)
    return complaints


@pytest.mark.parametrize(("program", "answers"), [("skopeo", MANIFESTS), ("crane", DIGESTS)])
def test_each_tag_gets_the_digest_that_its_registry_says(
    folder: Path, tmp_path: Path, program: str, answers: dict[str, str]
) -> None:
    done = pin(folder, registry(tmp_path, program, answers))
    assert done.returncode == 0, done.stderr
    lines = (folder / "images.lock").read_text().splitlines()
    assert lines[1:] == [f"{name}={image}@{DIGESTS[image]}" for name, image in IMAGES.items()]
    assert check(folder) == []


def test_an_image_that_the_registry_does_not_know_leaves_the_lock_as_it_was(folder: Path, tmp_path: Path) -> None:
    (folder / "images.lock").write_text("as it was\n")
    done = pin(folder, registry(tmp_path, "skopeo", {"python:3.12": MANIFESTS["python:3.12"]}))
    assert done.returncode != 0
    assert (folder / "images.lock").read_text() == "as it was\n"
    assert sorted(path.name for path in folder.iterdir() if path.is_file()) == ["images.env", "images.lock"]


def test_without_a_program_that_asks_registries_nothing_is_written(folder: Path, tmp_path: Path) -> None:
    programs = registry(tmp_path, "other", {})
    done = pin(folder, programs)
    assert done.returncode != 0
    assert "install skopeo or crane" in done.stderr
    assert not (folder / "images.lock").exists()


def test_a_release_with_a_tag_that_moves_is_refused(folder: Path) -> None:
    assert check(folder) == ["there is no images.lock; `make pin-images` makes it, where there is a network"]
    digest = "sha256:" + "0" * 64
    lock = folder / "images.lock"
    lock.write_text(f"PYTHON_IMAGE=python:3.12@{digest}\nREDIS_IMAGE=redis:8\n")
    assert check(folder) == ["REDIS_IMAGE is redis:8, without a digest"]
    lock.write_text(f"PYTHON_IMAGE=python:3.11@{digest}\n")
    assert check(folder) == [
        "images.lock has PYTHON_IMAGE as python:3.11, images.env as python:3.12; run `make pin-images` again",
        "images.lock lacks REDIS_IMAGE; run `make pin-images` again",
    ]
    lock.write_text(f"PYTHON_IMAGE=python:3.12@{digest}\nREDIS_IMAGE=redis:8@{digest}\n")
    assert check(folder) == []
    assert len(check(folder, version="latest")) == 1


def test_the_release_of_this_tree_is_built_only_with_digests() -> None:
    """The make target asks the check first, and builds with the lock's names."""
    makefile = (DEPLOY.parent / "Makefile").read_text()
    (recipe,) = re.findall(r"^release-images:.*\n((?:\t.+\n)+)", makefile, re.MULTILINE)
    assert recipe.index("deploy/check-images.sh") < recipe.index("--env-file deploy/images.lock build")
    if not (DEPLOY / "images.lock").exists():
        assert check(DEPLOY) != []


@pytest.mark.parametrize("name", ["pin-images.sh", "check-images.sh", "secrets.sh"])
def test_scripts_are_sound_shell(name: str) -> None:
    subprocess.run(["bash", "-n", str(DEPLOY / name)], check=True)
    assert os.access(DEPLOY / name, os.X_OK)
