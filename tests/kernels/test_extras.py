"""Advice on what to install, wherever it is given."""

import re
import subprocess
import tomllib
from pathlib import Path

from warpfold.kernels.extras import install

ROOT = Path(__file__).parents[2]


def test_an_extra_is_installed_from_a_clone() -> None:
    assert install("server") == "`pip install '.[server]'` in a clone of Warpfold"
    assert install("cuda13", "cuda12").startswith("`pip install '.[cuda13]'` or `pip install '.[cuda12]'` in a clone")


def test_nothing_advises_to_install_a_name_that_is_in_no_index() -> None:
    named = re.compile(r"pip install (-\S+ )*['\"`]?warpfold\b|warpfold\[\w")
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    texts = {
        name: ROOT / name for name in listed.split("\0") if name.endswith((".py", ".md", ".jinja", ".ipynb", ".sh"))
    }
    assert len(texts) > 500
    faults = [
        f"{name}:{number}"
        for name, path in texts.items()
        if path.is_file() and path != Path(__file__)
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if named.search(line)
    ]
    assert faults == []


def test_every_extra_that_is_named_exists() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    sources = [
        path for folder in ("app", "client", "contract", "kernels", "worker") for path in (ROOT / folder).rglob("*.py")
    ]
    named = {
        extra
        for path in sources
        for call in re.findall(r"\binstall\((['\"][^)]*)\)", path.read_text(encoding="utf-8"))
        for extra in re.findall(r"\w+", call)
    }
    assert {"server", "embedded", "frames", "tracing", "cuda13", "cuda12"} <= named
    assert named <= set(extras)
