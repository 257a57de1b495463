"""The dashboard in a real, headless Chromium, on a real service with a CPU slot.

`pytest tests/browser --screenshots` also writes the pictures of the docs.
"""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect, sync_playwright

from tests.support.servers import folder
from tests.support.visits import Dashboard, Visit
from warpfold.client.demo.service import running_service

_NAMES = ("chromium", "google-chrome", "chromium-browser", "google-chrome-stable")
_FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--screenshots", action="store_true", help="write the pictures of the docs")


# Of the package, not of the session: Playwright keeps an event loop, in which no other test could start its own.
@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    path = next(filter(None, map(shutil.which, _NAMES)), None)
    if path is None:
        pytest.skip(f"no browser: none of {', '.join(_NAMES)} is on PATH")
    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=path, args=list(_FLAGS))
        expect.set_options(timeout=60_000)
        yield launched
        launched.close()


@pytest.fixture(scope="package")
def dashboard() -> Iterator[Dashboard]:
    with folder() as root:
        (root / "data").mkdir()
        with running_service(Path(root), "--slots", "cpu") as service:
            yield Dashboard.of(service, Path(root) / "warpfold")


@pytest.fixture
def visit(browser: Browser, dashboard: Dashboard) -> Iterator[Callable[..., Visit]]:
    """Opens the dashboard as a user. What the browser complains of, violations of the page's policy among
    it, fails the test."""
    visits: list[Visit] = []

    def begin(user: str | None = "ann", *, width: int = 1280, scheme: str = "light") -> Visit:
        visits.append(Visit.begin(browser, dashboard, user, width, scheme))
        return visits[-1]

    yield begin
    complaints = [complaint for one in visits for complaint in one.complaints]
    for one in visits:
        one.page.context.close()
    assert not complaints
