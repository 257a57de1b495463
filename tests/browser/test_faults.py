import re
from collections.abc import Callable

import psutil
from playwright.sync_api import expect

from tests.support.visits import SUM, Dashboard, Visit
from warpfold.app.db import BlockingDatabase

Visiting = Callable[..., Visit]

PAYLOAD = "<img src=x onerror=\"document.title='owned'\"><script>document.title='owned'</script>"


def test_an_open_page_recovers_by_itself_when_the_api_comes_back(visit: Visiting, dashboard: Dashboard) -> None:
    visited = visit()
    visited.page.goto("/jobs?kind=reduce")
    api = _api(dashboard)
    supervisor = api.parent()
    assert supervisor is not None
    supervisor.suspend()  # or the api might be back before the page asks again
    api.kill()
    try:
        expect(visited.page.get_by_text("Reconnecting…")).to_be_visible()
    finally:
        supervisor.resume()
    expect(visited.page.get_by_text("Reconnecting…")).to_be_hidden()
    job = dashboard.ended(SUM)
    expect(visited.page.locator(f"#job-{job}")).to_be_visible()
    visited.complaints[:] = [complaint for complaint in visited.complaints if "Error Code 503" not in complaint]


def test_what_is_asked_for_once_is_asked_for_again_when_it_did_not_come(visit: Visiting, benchmark: str) -> None:
    page = visit().page
    away = [True]
    page.route("**/measured", lambda route: route.abort() if away else route.continue_())
    page.goto(f"/jobs/{benchmark}")
    expect(page.get_by_text("Reconnecting…")).to_be_visible()
    away.clear()
    expect(page.get_by_role("group", name="Measured points")).to_contain_text("numpy")
    expect(page.get_by_text("Reconnecting…")).to_be_hidden()


def test_a_viewer_sees_everything_and_may_do_nothing(visit: Visiting, dashboard: Dashboard) -> None:
    visited = visit("vera")
    job = dashboard.ended(SUM)
    visited.page.goto(f"/jobs/{job}")
    expect(visited.page.locator("#value")).to_have_text("1.0")
    expect(visited.page.get_by_role("link", name="Run again")).to_have_count(0)
    expect(visited.page.get_by_role("link", name="Admin")).to_have_count(0)
    for path in ("/admin", "/jobs/new"):
        answer = visited.page.goto(path)
        assert answer is not None
        assert answer.status == 403
        expect(visited.page.get_by_role("heading", name="The token does not allow this")).to_be_visible()


def test_html_in_tags_and_errors_is_shown_and_not_run(visit: Visiting, dashboard: Dashboard) -> None:
    page = visit().page
    job = dashboard.ended({**SUM, "tags": {"note": PAYLOAD[:256]}})
    database = BlockingDatabase(dashboard.database_url, application="test")
    with database._engine.begin() as connection:
        connection.exec_driver_sql(
            "update jobs set status = 'failed', reason = 'internal', error = %s, result = null, version = version + 1 "
            "where id = %s",
            (PAYLOAD, job),
        )
    database.close()
    for path in (f"/jobs/{job}", "/jobs?tag=note", "/", f"/compare?job={job}", f"/jobs/new?from={job}"):
        page.goto(path)
        assert page.locator("main img, main script").count() == 0
        assert "owned" not in page.title()
    page.goto(f"/jobs/{job}")
    expect(page.locator(".failure")).to_contain_text(PAYLOAD)


def test_a_form_of_another_site_is_refused(visit: Visiting, dashboard: Dashboard) -> None:
    page = visit().page
    # A page of another origin; the session's cookie would not even be sent along.
    page.goto(f"data:text/html,<form method=post action='{dashboard.url}/sign-out'><button>go</button></form>")
    with page.expect_response(re.compile("/sign-out")) as answer:
        page.get_by_role("button").click()
    assert answer.value.status == 403
    page.goto("/")
    expect(page.get_by_role("button", name="Sign out")).to_be_visible()


def test_what_does_not_exist_is_a_page_that_says_so(visit: Visiting) -> None:
    page = visit().page
    answer = page.goto("/jobs/00000000-0000-4000-8000-000000000000")
    assert answer is not None
    assert answer.status == 404
    expect(page.get_by_role("heading", name="There is no such thing")).to_be_visible()


def _api(dashboard: Dashboard) -> psutil.Process:
    """The process that listens where this dashboard is."""
    port = int(dashboard.url.rpartition(":")[2])
    for connection in psutil.net_connections("tcp"):
        if connection.status == psutil.CONN_LISTEN and connection.laddr.port == port and connection.pid:
            return psutil.Process(connection.pid)
    raise LookupError("the api's process was not found")
