"""The site builds without a warning, holds what it is made from, and needs no other host."""

import os
import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

from warpfold.app.config import Settings
from warpfold.app.main import create_app

ROOT = Path(__file__).parents[2]
_LOADED = re.compile(r"<(?:script|img|link|iframe|source)\b[^>]*?(?:src|href)=[\"']?((?:https?:)?//[^\"'\s>]+)[^>]*>")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return folder


def test_no_page_loads_anything_from_elsewhere(site: Path) -> None:
    pages = list(site.rglob("*.html"))
    assert len(pages) > 30
    loaded = {address for page in pages for address in _LOADED.findall(page.read_text())}
    assert loaded == set()


def test_the_contract_names_every_route_and_body(site: Path) -> None:
    page = (site / "reference" / "http.html").read_text()
    document = create_app(Settings(database_url="postgresql://nobody@nowhere.invalid/x")).openapi()
    for path, item in document["paths"].items():
        for method in item:
            assert f"{method.upper()} {path}" in page
    for name in document["components"]["schemas"]:
        assert f'id="body-{name.lower()}"' in page


def test_the_page_of_settings_in_the_repository_says_what_they_are() -> None:
    hooks = runpy.run_path(str(ROOT / "docs" / "site" / "hooks.py"))
    written = hooks["SETTINGS"].read_text()
    assert written == "\n".join(hooks["settings_page"]()) + "\n", "`python docs/site/hooks.py` writes it anew"


def test_every_setting_is_listed(site: Path) -> None:
    page = (site / "reference" / "settings.html").read_text()
    for name in Settings.model_fields:
        assert f"WARPFOLD_{name.upper()}" in page


@pytest.mark.parametrize("words", [("client", "Client", "reduce"), ("kernels", "open_backend"), ("kernels", "merge")])
def test_docstrings_are_there(site: Path, words: tuple[str, ...]) -> None:
    page = (site / "reference" / f"{words[0]}.html").read_text()
    assert all(word in page for word in words)


@pytest.mark.parametrize(
    "field", ["models.Job.queue_position", "results.Measurement.gb_per_s", "reductions.Options.ddof"]
)
def test_every_field_of_what_the_client_takes_and_gives_is_listed(site: Path, field: str) -> None:
    assert f'id="warpfold.client.{field}"' in (site / "reference" / "client.html").read_text()
