import re
from collections.abc import Callable

from playwright.sync_api import Dialog, expect

from tests.support.visits import BENCHMARK, LONG, SUM, Dashboard, Visit

Visiting = Callable[..., Visit]


def test_a_job_is_submitted_by_form_watched_and_its_result_seen(visit: Visiting, dashboard: Dashboard) -> None:
    page = visit().page
    page.goto("/jobs/new")
    page.get_by_label("values").fill("1e16 1 -1e16")
    page.get_by_label("dtype").select_option("float64")
    page.get_by_text("More options").click()
    page.get_by_label("tags").fill("course=p05")
    expect(page.locator("#curl")).to_contain_text('"tags": {"course": "p05"}')
    page.get_by_role("button", name="Submit").click()
    expect(page).to_have_url(re.compile(r"/jobs/[0-9a-f-]{36}$"))
    expect(page.locator(".state-line .status")).to_have_text("succeeded")
    expect(page.locator("#value")).to_have_text("1.0")
    expect(page.get_by_text("correctly rounded", exact=True)).to_be_visible()
    expect(page.get_by_role("img", name=re.compile("Where the time went: .*kernel"))).to_be_visible()
    page.goto("/jobs?tag=course:p05")
    expect(page.get_by_role("link", name=re.compile("sum of 3 values as float64")).first).to_be_visible()


def test_a_benchmark_shows_its_progress_and_then_its_charts(visit: Visiting, dashboard: Dashboard) -> None:
    visited = visit()
    with dashboard.client() as client:
        job = client.submit(BENCHMARK)
    visited.page.goto(f"/jobs/{job.id}")
    chart = visited.page.get_by_role("img", name=re.compile("Throughput"))
    expect(chart.locator("svg path").first).to_be_attached()
    expect(chart).to_have_accessible_name(re.compile("GB/s against the number of elements"))
    visited.page.get_by_text("The numbers").first.click()
    expect(visited.page.get_by_role("group", name=re.compile("The numbers of Throughput"))).to_contain_text("exact")
    expect(visited.page.get_by_role("group", name="Measured points")).to_contain_text("numpy")


def test_a_sweep_of_shapes_is_a_heat_map(visit: Visiting, dashboard: Dashboard) -> None:
    sweep = {
        "kind": "benchmark", "strategies": ["exact", "numpy"], "backend": "cpu", "caches": ["hot"],
        "rows": [1000], "columns": [3, 40], "time_limit_s": 0.05, "min_samples": 2,
    }  # fmt: skip
    with dashboard.client() as client:
        job = client.submit(sweep)
    page = visit().page
    page.goto(f"/jobs/{job.id}")
    chart = page.get_by_role("img", name=re.compile("Exact beside the best of numpy: axis 1, sum of float32"))
    expect(chart.locator("svg path").first).to_be_attached()
    expect(chart).to_have_accessible_name(re.compile("The exact strategy is faster at [0-2] of 2 shapes"))
    expect(chart.get_by_text(re.compile("^[0-9.]+ ×$"))).to_have_count(2)
    expect(page.get_by_role("group", name="Measured points")).to_contain_text("1,000 × 40, axis 1")


def test_a_running_job_is_cancelled_after_a_question(visit: Visiting, dashboard: Dashboard) -> None:
    page = visit().page
    with dashboard.client() as client:
        job = client.submit(LONG)
    page.goto(f"/jobs/{job.id}")
    expect(page.locator(".state-line .status")).to_have_text("running")
    page.once("dialog", Dialog.dismiss)
    page.get_by_role("button", name="Cancel").click()
    expect(page.locator(".state-line .status")).to_have_text("running")
    page.once("dialog", Dialog.accept)
    page.get_by_role("button", name="Cancel").click()
    expect(page.locator(".state-line .status")).to_have_text("cancelled")


def test_the_queue_says_in_how_long_jobs_start_and_fits_the_screen(visit: Visiting, dashboard: Dashboard) -> None:
    page = visit().page
    with dashboard.client() as client:
        jobs = [client.submit(LONG), client.submit(SUM)]
        page.goto("/")
        queue = page.get_by_role("group", name="Queue by owner")
        expect(queue.locator("time[data-ahead]")).to_have_text([re.compile("^in ")] * 2)
        for width in (1280, 390):
            page.set_viewport_size({"width": width, "height": 800})
            assert queue.evaluate("one => one.scrollWidth - one.clientWidth") == 0, width
        page.goto(f"/jobs/{jobs[1].id}")
        expect(page.get_by_text(re.compile("^expected to start in "))).to_be_visible()
        for job in jobs:
            job.cancel()


def test_the_list_keeps_itself_current_and_an_unchanged_poll_is_a_304(visit: Visiting, dashboard: Dashboard) -> None:
    visited = visit()
    visited.page.goto("/jobs?kind=cluster")
    expect(visited.page.get_by_text("No job matches.")).to_be_visible()
    visited.page.wait_for_event("response", lambda answer: "/live/jobs" in answer.url and answer.status == 304)
    job = dashboard.ended({"kind": "cluster", "puzzle": "reduction"})
    expect(visited.page.locator(f"#job-{job}")).to_be_visible()
    expect(visited.page.locator("tbody .status")).to_have_text("succeeded")
    seen = len(visited.answers("/live/jobs"))
    for _ in range(2):
        visited.page.wait_for_event("response", lambda answer: "/live/jobs" in answer.url)
    assert set(visited.answers("/live/jobs")[seen:]) == {304}


def test_what_was_ticked_stays_ticked_while_the_list_changes(visit: Visiting, dashboard: Dashboard) -> None:
    visited = visit()
    ids = [dashboard.ended({**SUM, "tags": {"ticked": "yes"}}) for _ in range(2)]
    visited.page.goto("/jobs?tag=ticked")
    for job in ids:
        visited.page.locator(f"#pick-{job}").check()
    third = dashboard.ended({**SUM, "tags": {"ticked": "yes"}})
    expect(visited.page.locator(f"#job-{third}")).to_be_visible()
    visited.page.get_by_role("button", name="Compare the ticked").click()
    expect(visited.page.get_by_text("the same bits")).to_be_visible()
    assert all(job in visited.page.url for job in ids)
    assert third not in visited.page.url


def test_two_benchmarks_are_compared_case_by_case(visit: Visiting, dashboard: Dashboard, benchmark: str) -> None:
    page = visit().page
    ids = [benchmark, dashboard.ended(BENCHMARK)]
    page.goto(f"/compare?job={ids[0]}")
    page.get_by_label("Another job").fill(f"{dashboard.url}/jobs/{ids[1]}")
    page.get_by_role("button", name="Add").click()
    region = page.get_by_role("group", name="Case by case")
    expect(region.locator("tbody tr")).to_have_count(6)
    expect(region).to_contain_text("×")


def test_filters_act_when_they_are_chosen_and_stand_in_the_address(visit: Visiting, dashboard: Dashboard) -> None:
    visited = visit()
    page = visited.page
    job = dashboard.ended({**SUM, "tags": {"filter": "by-form"}})
    page.goto("/jobs")
    page.get_by_label("failed").check()
    expect(page).to_have_url(re.compile(r"\?status=failed$"))
    expect(page.locator(f"#job-{job}")).to_have_count(0)
    page.get_by_label("succeeded").check()
    expect(page).to_have_url(re.compile(r"status=succeeded&status=failed"))
    page.get_by_label("Text").fill("form")
    page.get_by_label("Text").press("Enter")
    expect(page.locator("tbody tr")).to_have_count(1)
    expect(page.get_by_text("1 job", exact=True)).to_be_visible()
    page.get_by_text("More filters").click()
    page.get_by_label("reduce", exact=True).check()
    expect(page).to_have_url(re.compile(r"kind=reduce"))
    page.get_by_label("Since").fill("1h")
    page.get_by_label("Since").press("Enter")
    expect(page).to_have_url(re.compile(r"since=1h"))
    address = page.url
    another = dashboard.ended({**SUM, "tags": {"filter": "by-form"}})
    expect(page.locator(f"#job-{another}")).to_be_visible()
    assert page.url == address, "a poll keeps the filters"
    page.reload()
    for box in ("failed", "succeeded", "reduce"):
        expect(page.get_by_label(box, exact=True)).to_be_checked()
    expect(page.get_by_label("Since")).to_have_value("1h")
    expect(page.locator("tbody tr")).to_have_count(2)
    page.go_back()
    expect(page.get_by_label("Since")).to_have_value("")
    expect(page.get_by_label("reduce", exact=True)).to_be_checked()
    page.go_forward()
    expect(page).to_have_url(address)
    expect(page.get_by_label("Since")).to_have_value("1h")
    page.get_by_role("link", name="Clear").click()
    expect(page).to_have_url(f"{dashboard.url}/jobs")
    expect(page.get_by_label("failed")).not_to_be_checked()


def test_what_runs_now_is_on_the_first_page(visit: Visiting, dashboard: Dashboard) -> None:
    page = visit().page
    page.goto("/")
    expect(page.get_by_role("article", name=re.compile(":cpu$"))).to_contain_text("utilisation")
    with dashboard.client() as client:
        job = client.submit(LONG)
    expect(page.locator(f"#runs-{job.id}")).to_be_visible()
    expect(page.get_by_role("region", name="Queue by owner")).to_contain_text("ann")
    with dashboard.client() as client:
        client.cancel(job.id)
    expect(page.get_by_text("Nothing runs here.")).to_be_visible()


def test_a_preset_is_run_from_its_page(visit: Visiting) -> None:
    page = visit().page
    page.goto("/presets/p34-reduction")
    page.get_by_role("button", name="Run 1 job").click()
    expect(page.locator(".state-line .status")).to_have_text("succeeded")
    expect(page.get_by_role("region", name="Its jobs")).to_contain_text("reduction")


def test_a_jobs_page_says_why_it_ran_where_it_did(visit: Visiting, dashboard: Dashboard) -> None:
    made = {"type": "generate", "distribution": "uniform", "n": 2_000_000, "dtype": "float64"}
    page = visit().page
    page.goto(f"/jobs/{dashboard.ended({'kind': 'reduce', 'op': 'sum', 'source': made})}")
    expect(page.get_by_role("region", name="Where it ran")).to_contain_text(re.compile("slot|predicted"))


def test_groups_are_shown_as_bars_and_as_a_table(visit: Visiting, dashboard: Dashboard) -> None:
    keys = {"name": "region", "source": {"type": "values", "values": ["south", "north", "south"]}}
    values = {"op": "sum", "name": "total", "source": {"type": "values", "values": [1e16, 2.5, 2.0]}}
    with dashboard.client() as client:
        job = client.submit({"kind": "groupby", "by": [keys], "aggregations": [values]})
    page = visit().page
    page.goto(f"/jobs/{job.id}")
    chart = page.get_by_role("img", name=re.compile("Bars of sum by region, 2 groups"))
    expect(chart.locator("svg path").first).to_be_attached()
    table = page.get_by_role("group", name=re.compile("2 groups of 3 rows"))
    expect(table).to_contain_text("1.0000000000000002e+16")
    expect(table.get_by_role("row")).to_have_count(3)


def test_ticked_jobs_are_tagged_and_deleted_and_a_job_gets_a_name_on_a_phone_too(
    visit: Visiting, dashboard: Dashboard
) -> None:
    jobs = [dashboard.ended(SUM) for _ in range(2)]
    page = visit(width=375).page
    page.on("dialog", Dialog.accept)
    page.goto("/jobs")
    for job in jobs:
        page.locator(f"#pick-{job}").check()
    page.get_by_label("Tag of the ticked").fill("study:ticked")
    page.get_by_label("Tag of the ticked").press("Enter")
    page.goto("/jobs?tag=study:ticked")
    expect(page.locator("tbody tr")).to_have_count(2)
    page.goto(f"/jobs/{jobs[0]}")
    page.get_by_text("Name, note and tags").click()
    page.get_by_label("Name", exact=True).fill("first sweep")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("heading", name="first sweep")).to_be_visible()
    page.goto("/jobs?tag=study:ticked")
    page.get_by_label("all", exact=True).check()
    page.get_by_role("button", name="Delete", exact=True).click()
    expect(page.get_by_text("No job matches")).to_be_visible()
