"""A part of a page that changes by itself keeps clicks, selections and scrolling."""

import re
from collections.abc import Callable

from playwright.sync_api import Page, Response, expect

from tests.support.visits import SUM, Dashboard, Visit

Visiting = Callable[..., Visit]

TAGGED = {**SUM, "tags": {"polls": "yes"}}


def changed(answer: Response) -> bool:
    return "/live/" in answer.url and answer.status == 200


def test_a_click_is_not_lost_when_the_list_changes_under_it(visit: Visiting, dashboard: Dashboard) -> None:
    page = visit().page
    first = dashboard.ended(TAGGED)
    page.goto("/jobs?tag=polls")
    page.locator(f"#job-{first}").hover()
    page.mouse.down()
    with page.expect_response(changed):
        dashboard.ended(TAGGED)
    page.wait_for_timeout(500)  # for what must not happen
    page.mouse.up()
    expect(page).to_have_url(re.compile(first))


def test_a_selection_stays_until_it_is_given_up(visit: Visiting, dashboard: Dashboard) -> None:
    page = visit().page
    first = dashboard.ended(TAGGED)
    page.goto("/jobs?tag=polls")
    select(page, f"#job-{first}")
    with page.expect_response(changed):
        second = dashboard.ended(TAGGED)
    page.wait_for_event("response", changed)  # asked again: the page has not taken it
    assert page.evaluate("getSelection().toString()") == "reduce sum of 3 values as float32"
    page.evaluate("getSelection().removeAllRanges()")
    expect(page.locator(f"#job-{second}")).to_be_visible()


def test_a_wide_table_stays_where_it_was_scrolled_to(visit: Visiting, dashboard: Dashboard) -> None:
    page = visit().page
    dashboard.ended(TAGGED)
    page.goto("/jobs?tag=polls")
    page.evaluate("""() => {
        const wide = new CSSStyleSheet();
        wide.replaceSync("table { min-width: 3000px }");
        document.adoptedStyleSheets = [wide];
    }""")
    table = page.get_by_role("group", name="Jobs, newest first")
    table.evaluate("one => one.scrollTo({ left: 500 })")
    table.focus()
    job = dashboard.ended(TAGGED)
    expect(page.locator(f"#job-{job}")).to_be_attached()
    assert table.evaluate("one => one.scrollLeft") == 500
    expect(table).to_be_focused()


def select(page: Page, selector: str) -> None:
    page.locator(selector).evaluate("one => getSelection().selectAllChildren(one)")
