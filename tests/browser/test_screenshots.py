"""The pictures of docs/dashboard.md: `pytest tests/browser/test_screenshots.py --screenshots`."""

from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.support.visits import LONG, SUM, Dashboard, Visit

IMAGES = Path(__file__).parents[2] / "docs" / "images"

STUDY = {
    "kind": "benchmark",
    "strategies": ["exact", "numpy"],
    "sizes": [1000, 10_000, 100_000, 1_000_000, 10_000_000],
    "caches": ["cold"],
    "backend": "cpu",
    "time_limit_s": 0.5,
    "tags": {"course": "p05"},
}


@pytest.mark.timeout(600)
def test_the_pictures_of_the_docs(
    request: pytest.FixtureRequest, visit: Callable[..., Visit], dashboard: Dashboard
) -> None:
    if not request.config.getoption("--screenshots", default=False):
        pytest.skip("writes into docs/images only with --screenshots")
    study = dashboard.ended(STUDY)
    for op in ("sum", "mean", "norm2"):
        dashboard.ended({**SUM, "op": op, "tags": {"course": "p05"}})
    dashboard.ended({**LONG, "timeout_s": 0.3})
    dashboard.ended({"kind": "preset", "preset": "p34-reduction"}, "root")
    with dashboard.client("root") as client, dashboard.client("ann") as anns:
        running = client.submit(LONG)
        waiting = [owner.submit({**SUM, "priority": "low"}) for owner in (anns, anns, client)]
        light, dark = visit("ann", width=1180), visit("ann", width=1180, scheme="dark")
        light.page.goto("/")
        expect(light.page.locator(f"#runs-{running.id}")).to_be_visible()
        light.page.screenshot(path=IMAGES / "dashboard-now.png")
        dark.page.goto("/jobs")
        dark.page.screenshot(path=IMAGES / "dashboard-jobs.png")
        light.page.goto("/jobs/new?kind=benchmark")
        light.page.screenshot(path=IMAGES / "dashboard-new-job.png")
        for visited in (light, dark):
            visited.page.goto(f"/jobs/{study}")
            expect(visited.page.locator("[data-drawn]").first).to_be_attached()
            visited.page.locator("[data-drawn]").first.scroll_into_view_if_needed()
        dark.page.screenshot(path=IMAGES / "dashboard-charts.png")
        phone = visit("ann", width=375)
        phone.page.goto("/jobs")
        phone.page.screenshot(path=IMAGES / "dashboard-phone.png")
        for job in (running, *waiting):
            client.cancel(job.id)
    assert {path.name for path in IMAGES.glob("dashboard-*.png")} >= {
        f"dashboard-{name}.png" for name in ("now", "jobs")
    }
