from collections.abc import Callable

import psycopg
import pytest
from playwright.sync_api import expect

from tests.support.visits import Dashboard, Visit
from warpfold.client.api import Client
from warpfold.client.errors import Refused

Visiting = Callable[..., Visit]


def test_a_token_opens_the_page_that_was_asked_for(visit: Visiting, dashboard: Dashboard) -> None:
    page = visit(None).page
    page.goto("/jobs?status=failed")
    expect(page).to_have_url(f"{dashboard.url}/sign-in?next=%2Fjobs%3Fstatus%3Dfailed")
    page.get_by_label("Access token").fill(dashboard.tokens["ann"])
    page.get_by_role("button", name="Sign in").click()
    expect(page).to_have_url(f"{dashboard.url}/jobs?status=failed")
    expect(page.get_by_role("heading", name="Jobs")).to_be_visible()


def test_the_cookie_is_out_of_the_reach_of_scripts_and_other_sites(visit: Visiting, dashboard: Dashboard) -> None:
    visited = visit(None)
    page = visited.page
    page.goto("/sign-in")
    visited.sign_in(dashboard.tokens["ann"])
    expect(page.get_by_role("button", name="Sign out")).to_be_visible()
    [cookie] = [cookie for cookie in page.context.cookies() if cookie.get("name") == "warpfold_session"]
    assert cookie.get("httpOnly") is True
    assert cookie.get("sameSite") == "Strict"
    assert "warpfold_session" not in page.evaluate("document.cookie")


def test_a_wrong_token_is_told_beside_the_field(visit: Visiting) -> None:
    visited = visit(None)
    visited.page.goto("/sign-in")
    visited.sign_in("wf_wrong")
    field = visited.page.get_by_label("Access token")
    expect(visited.page.get_by_role("alert")).to_have_text("This token is unknown or was revoked.")
    expect(field).to_have_attribute("aria-invalid", "true")
    expect(field).to_have_accessible_description("This token is unknown or was revoked.")
    assert not [cookie for cookie in visited.page.context.cookies() if cookie.get("name") == "warpfold_session"]


def test_signing_out_ends_the_session_for_every_window(visit: Visiting, dashboard: Dashboard) -> None:
    page = visit().page
    page.goto("/")
    other = page.context.new_page()
    other.goto("/results")
    page.get_by_role("button", name="Sign out").click()
    expect(page).to_have_url(f"{dashboard.url}/sign-in")
    other.reload()
    expect(other).to_have_url(f"{dashboard.url}/sign-in?next=%2Fresults")


def test_an_open_page_whose_session_expires_asks_to_sign_in_and_comes_back(
    visit: Visiting, dashboard: Dashboard
) -> None:
    visited = visit("vera")
    visited.page.goto("/jobs?kind=reduce")
    with psycopg.connect(dashboard.database_url, autocommit=True) as connection:
        connection.execute("update sessions set expires_at = now() - interval '1 second'")
        connection.execute("notify warpfold_access")
    expect(visited.page).to_have_url(f"{dashboard.url}/sign-in?next=%2Fjobs%3Fkind%3Dreduce")
    visited.sign_in(dashboard.tokens["vera"])
    expect(visited.page).to_have_url(f"{dashboard.url}/jobs?kind=reduce")


def test_a_form_half_filled_when_the_session_ends_is_there_after_signing_in(
    visit: Visiting, dashboard: Dashboard
) -> None:
    visited = visit()
    visited.page.goto("/jobs/new?kind=benchmark")
    visited.page.get_by_label("sizes").fill("1e3")
    expect(visited.page.locator("#curl")).to_contain_text("[1000]")
    visited.page.context.clear_cookies()
    visited.page.get_by_label("sizes").fill("1e3, 4e3")
    expect(visited.page).to_have_url(f"{dashboard.url}/sign-in?next=%2Fjobs%2Fnew%3Fkind%3Dbenchmark")
    visited.sign_in(dashboard.tokens["ann"])
    expect(visited.page.get_by_label("sizes")).to_have_value("1e3, 4e3")
    visited.page.context.clear_cookies()
    visited.page.get_by_role("button", name="Submit").click()
    visited.sign_in(dashboard.tokens["ann"])
    expect(visited.page.get_by_label("sizes")).to_have_value("1e3, 4e3")


def test_a_link_to_the_api_asks_to_sign_in(visit: Visiting, dashboard: Dashboard) -> None:
    visited = visit(None)
    visited.page.goto("/v1/jobs?limit=1")
    expect(visited.page).to_have_url(f"{dashboard.url}/sign-in?next=%2Fv1%2Fjobs%3Flimit%3D1")
    visited.sign_in(dashboard.tokens["vera"])
    expect(visited.page.get_by_text('"items"')).to_be_visible()


@pytest.mark.parametrize("width", [1400, 375])
def test_a_key_is_made_rotated_and_removed_on_the_page_of_ones_own(
    visit: Visiting, dashboard: Dashboard, width: int
) -> None:
    visited = visit(width=width)
    page = visited.page
    page.on("dialog", lambda dialog: dialog.accept())
    page.goto("/account")
    form = page.get_by_role("form", name="A new key")
    form.get_by_label("Name").fill(f"sensor {width}")
    form.get_by_label("manage").uncheck()
    form.get_by_role("button", name="Make a key").click()
    secret = page.locator("#issued").inner_text()
    row = page.get_by_role("row").filter(has_text=f"sensor {width}")
    expect(row).to_contain_text("read, submit")
    assert visited.width_needed() <= width
    row.get_by_role("button", name="Rotate").click()
    expect(page.locator("#issued")).not_to_have_text(secret)
    expect(page.get_by_role("status")).to_contain_text("The old secret holds")
    row.get_by_role("button", name="Remove").click()
    expect(row).to_contain_text("removed")
    with Client(dashboard.url, secret) as client, pytest.raises(Refused, match="401"):
        client.whoami()


@pytest.mark.parametrize("width", [1400, 375])
def test_a_link_to_a_job_shows_its_report_to_somebody_who_is_not_signed_in(
    visit: Visiting, dashboard: Dashboard, benchmark: str, width: int
) -> None:
    visited = visit(width=width)
    page = visited.page
    page.goto(f"/jobs/{benchmark}")
    page.get_by_role("button", name="Make a link").click()
    address = page.locator("#link").inner_text()
    assert visited.width_needed() <= width
    page.context.clear_cookies()
    page.goto(address)
    expect(page.get_by_text(benchmark).first).to_be_visible()
    expect(page.locator("svg").first).to_be_visible()
    page.goto(f"/jobs/{benchmark}")
    expect(page).to_have_url(f"{dashboard.url}/sign-in?next=%2Fjobs%2F{benchmark}")
