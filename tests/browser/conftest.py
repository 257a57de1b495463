"""The dashboard in a real, headless Chromium, on a real service with a CPU slot.

`pytest tests/browser --screenshots` also writes the pictures of the docs.
"""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, expect, sync_playwright

from tests.support.servers import folder
from tests.support.visits import BENCHMARK, Dashboard, Visit
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
    # One renderer for the one site there is: to start one takes as long as a test.
    "--disable-features=SpareRendererForSitePerProcess",
    "--disable-site-isolation-trials",
    "--process-per-site",
    "--renderer-process-limit=1",
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


@pytest.fixture(scope="package")
def benchmark(dashboard: Dashboard) -> str:
    """The id of a benchmark that has ended, for all tests that only look at it."""
    return dashboard.ended(BENCHMARK)


# One for all tests, with a page that keeps its renderer alive: a new context, and the first page of a site, start
# processes anew, which takes longer than most tests.
@pytest.fixture(scope="package")
def context(browser: Browser, dashboard: Dashboard) -> Iterator[BrowserContext]:
    made = browser.new_context(base_url=dashboard.url, locale="en-GB")
    made.set_default_timeout(60_000)
    made.new_page().goto("/sign-in")
    yield made
    made.close()


@pytest.fixture
def visit(context: BrowserContext, dashboard: Dashboard) -> Iterator[Callable[..., Visit]]:
    """Opens a page of the dashboard as a user, the same for all visits of a test. What the browser complains of,
    violations of the page's policy among it, fails the test."""
    visits: list[Visit] = []

    def begin(user: str | None = "ann", *, width: int = 1280, scheme: str = "light") -> Visit:
        visits.append(Visit.begin(context, dashboard, user, width, scheme))
        return visits[-1]

    yield begin
    complaints = [complaint for visited in visits for complaint in visited.complaints]
    for page in context.pages[1:]:
        page.close()
    assert not complaints
