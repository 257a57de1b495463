"""Every page: no violation that axe finds, no sideways scrolling on a phone, both themes."""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest
from axe_playwright_python.base import AXE_SCRIPT
from playwright.sync_api import Page, expect

from tests.support.visits import SUM, Dashboard, Visit

Visiting = Callable[..., Visit]

PATHS: Mapping[str, str] = {
    "now": "/",
    "jobs": "/jobs",
    "job": "/jobs/{reduction}",
    "benchmark": "/jobs/{benchmark}",
    "batch": "/batches/{batch}",
    "new job": "/jobs/new",
    "new batch": "/batches/new",
    "new benchmark": "/jobs/new?kind=benchmark",
    "compare": "/compare?job={reduction}&job={benchmark}",
    "results": "/results",
    "data": "/datasets",
    "file": "/datasets/{dataset}",
    "presets": "/presets",
    "preset": "/presets/p05-task3-normal",
    "admin": "/admin",
    "account": "/account",
    "audit": "/admin/audit",
    "removal": "/admin/users/vera/removal",
    "nothing": "/jobs/00000000-0000-4000-8000-000000000000",
}


SCALING: Mapping[str, Any] = {
    "kind": "scaling",
    "sizes": [1_000_000],
    "ranks": [2],
    "algorithms": ["tree"],
    "samples": 3,
    "time_limit_s": 0.2,
}

EMPTY: Mapping[str, Any] = {"type": "values", "values": [], "dtype": "int64"}
COLOURS = ("color-contrast", "link-in-text-block")
"""The rules of axe for what a theme changes."""


def violations(page: Page, rules: Sequence[str] = ()) -> list[tuple[str, list[str]]]:
    """The rules of axe that the page breaks, each with the first elements that do."""
    options = {"resultTypes": ["violations"], **({"runOnly": rules} if rules else {})}
    if not page.evaluate("'axe' in window"):
        page.evaluate(AXE_SCRIPT)
    violations = page.evaluate("options => axe.run(options).then(results => results.violations)", options)
    return [(rule["id"], [node["html"][:200] for node in rule["nodes"]][:3]) for rule in violations]


@pytest.fixture(scope="module")
def jobs(dashboard: Dashboard, benchmark: str) -> Mapping[str, str]:
    with dashboard.client() as client:
        batch = client.submit_many([SUM, {**SUM, "op": "max", "source": EMPTY}], name="both", tags={"a": "b"}).wait()
        (dashboard.data_dir / "sales.csv").write_text("price,region\n1.5,EU\n2,US\n")
        dataset = client.upload(dashboard.data_dir / "sales.csv").id
        client.submit(
            {**SUM, "source": {"type": "dataset", "id": dataset, "name": "sales.csv", "column": "price"}}
        ).wait()
    reduction = dashboard.ended({**SUM, "tags": {"a": "b"}})
    return {"reduction": reduction, "benchmark": benchmark, "batch": batch.id, "dataset": dataset}


@pytest.mark.parametrize("path", PATHS.values(), ids=PATHS.keys())
def test_a_page_is_accessible_and_fits_in_both_themes_and_on_a_phone(
    visit: Visiting, jobs: Mapping[str, str], path: str
) -> None:
    visited = visit("root")
    visited.page.goto(path.format(**jobs))
    if path in ("/jobs/{benchmark}", "/results"):
        expect(visited.page.locator("[data-drawn]").first).to_be_attached()
    for width in (1280, 375):
        visited.page.set_viewport_size({"width": width, "height": 800})
        visited.page.emulate_media(color_scheme="light")
        assert violations(visited.page) == [], f"light, {width} px"
        assert visited.width_needed() <= width
        visited.page.emulate_media(color_scheme="dark")
        assert violations(visited.page, COLOURS) == [], f"dark, {width} px"
        assert visited.width_needed() <= width


def test_a_link_to_a_body_of_the_api_opens_it(visit: Visiting) -> None:
    page = visit("root", width=375).page
    page.goto("/docs#submit_job")
    page.locator("#submit_job").get_by_role("link", name="ReduceSpec-Input").click()
    expect(page.locator("#ReduceSpec-Input")).to_be_visible()


def test_long_tags_and_paths_fit_on_a_phone(visit: Visiting, dashboard: Dashboard) -> None:
    path = "a-long-name-of-a-simulation/" * 20
    tags = {"experiment": "a-rather-long-name-" * 6, "x" * 60: "y" * 120}
    job = dashboard.ended({"kind": "reduce", "source": {"type": "path", "path": f"{path}x.npy"}, "tags": tags})
    visited = visit(width=375)
    for page in (f"/jobs/{job}", "/jobs?tag=experiment"):
        visited.page.goto(page)
        expect(visited.page.locator(".tag").first).to_be_visible()
        assert visited.width_needed() <= 375
    assert visited.page.locator(f"#job-{job}").evaluate("link => link.getClientRects().length") < 10


def test_a_chart_on_a_phone_is_as_readable_as_anywhere(visit: Visiting, jobs: Mapping[str, str]) -> None:
    heights = []
    for width in (1280, 375):
        page = visit(width=width).page
        page.goto(f"/jobs/{jobs['benchmark']}")
        label = page.locator("[data-drawn] svg text").filter(has_text="elements").first
        expect(label).to_be_attached()
        heights.append(label.evaluate("one => one.getBoundingClientRect().height"))
    assert heights[1] == pytest.approx(heights[0], rel=0.1)


def test_a_chart_that_is_not_drawn_anew_yet_shrinks_with_its_page(visit: Visiting, jobs: Mapping[str, str]) -> None:
    page = visit(width=1280).page
    page.goto(f"/jobs/{jobs['benchmark']}")
    expect(page.locator("[data-drawn] svg").first).to_be_attached()
    page.evaluate("addEventListener('resize', event => event.stopImmediatePropagation(), true)")
    page.set_viewport_size({"width": 375, "height": 800})
    for picture in page.locator(".picture").all():
        assert picture.evaluate("element => element.scrollWidth - element.clientWidth") <= 0


def test_a_report_fits_on_paper(visit: Visiting, dashboard: Dashboard) -> None:
    a4 = 680  # 180 mm between the margins
    visited = visit(width=a4)
    studies = ({"kind": "accuracy", "distributions": ["mixed"], "sizes": [100_000], "permutations": 8}, SCALING)
    for spec in studies:
        visited.page.goto(f"/v1/reports/{dashboard.ended(spec)}")
        visited.page.emulate_media(media="print")
        assert visited.width_needed() <= a4


def test_every_page_is_in_reach_on_a_phone(visit: Visiting) -> None:
    page = visit("root", width=375).page
    page.goto("/admin")
    for link in page.get_by_role("navigation", name="Pages").get_by_role("link").all():
        expect(link).to_be_in_viewport(ratio=1)


def test_signing_in_is_accessible(visit: Visiting) -> None:
    visited = visit(None, width=375)
    visited.page.goto("/sign-in")
    visited.sign_in("wf_wrong")
    assert violations(visited.page) == []
    assert visited.width_needed() <= 375


def test_the_theme_follows_the_system_until_it_is_chosen_and_then_stays(visit: Visiting) -> None:
    page = visit(scheme="dark").page
    page.goto("/")
    ground = "getComputedStyle(document.body).backgroundColor"
    assert page.evaluate(ground) == "rgb(14, 17, 22)"
    page.get_by_role("button", name="Switch between dark and light").click()
    assert page.evaluate(ground) == "rgb(246, 247, 249)"
    page.goto("/jobs")
    assert page.evaluate(ground) == "rgb(246, 247, 249)"
    expect(page.locator("html")).to_have_attribute("data-theme", "light")


def test_the_keyboard_alone_gets_to_the_content_and_through_it(visit: Visiting, jobs: Mapping[str, str]) -> None:
    page = visit().page
    page.goto("/jobs")
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to the content")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile("#main$"))
    link = page.locator(f"#job-{jobs['reduction']}")
    for _ in range(30):
        page.keyboard.press("Tab")
        if link.evaluate("one => one === document.activeElement"):
            break
    expect(link).to_be_focused()
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(jobs["reduction"]))


def test_focus_stays_where_it_is_while_the_page_changes(visit: Visiting, dashboard: Dashboard) -> None:
    page = visit().page
    first = dashboard.ended({**SUM, "tags": {"focus": "yes"}})
    page.goto("/jobs?tag=focus")
    page.locator(f"#job-{first}").focus()
    second = dashboard.ended({**SUM, "tags": {"focus": "yes"}})
    expect(page.locator(f"#job-{second}")).to_be_visible()
    expect(page.locator(f"#job-{first}")).to_be_focused()
