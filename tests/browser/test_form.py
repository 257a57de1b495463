import re
import time
from collections.abc import Callable

import pyarrow
import pyarrow.parquet
from playwright.sync_api import Route, expect

from tests.support.visits import SUM, Dashboard, Visit

Visiting = Callable[..., Visit]


def test_a_bad_value_is_marked_and_nothing_that_was_typed_is_lost(visit: Visiting, dashboard: Dashboard) -> None:
    page = visit().page
    page.goto("/jobs/new?kind=benchmark")
    page.get_by_label("sizes").fill("1e3, many")
    page.get_by_role("checkbox", name="max", exact=True).check()
    page.get_by_text("More options").click()
    page.get_by_label("tags").fill("a=b")
    expect(page.get_by_role("complementary")).to_contain_text("would not accept this yet: sizes.1")
    page.get_by_role("button", name="Submit").click()
    field = page.get_by_label("sizes")
    expect(field).to_have_attribute("aria-invalid", "true")
    expect(field).to_have_accessible_description(re.compile("valid integer"))
    expect(field).to_have_value("1e3, many")
    expect(page.get_by_role("checkbox", name="max", exact=True)).to_be_checked()
    expect(page.get_by_label("tags")).to_have_value("a=b")
    page.get_by_role("alert").get_by_role("link", name="sizes").click()
    expect(field).to_be_focused()
    field.fill("1e3, 10^4")
    page.get_by_role("button", name="Submit").click()
    expect(page).to_have_url(re.compile(r"/jobs/[0-9a-f-]{36}$"))
    with dashboard.client() as client:
        client.cancel(page.url.rpartition("/")[2])  # no test waits for what it measures


def test_a_choice_brings_the_fields_that_belong_to_it(visit: Visiting) -> None:
    page = visit().page
    page.goto("/jobs/new")
    source = page.get_by_role("group", name="source")
    source.get_by_label("type", exact=True).select_option("generate")
    source.get_by_label("distribution").select_option("lognormal")
    source.get_by_label("sigma").fill("3")
    source.get_by_label("n", exact=True).fill("2^20")
    expect(page.locator("#curl")).to_contain_text('"n": 1048576')
    expect(page.locator("#curl")).to_contain_text('"parameters": {"sigma": 3}')
    expect(page.get_by_role("group", name="other")).to_have_count(0)
    page.get_by_label("op", exact=True).select_option("dot")
    expect(page.get_by_role("group", name="other")).to_be_visible()
    expect(source.get_by_label("n", exact=True)).to_have_value("2^20")


def later(seconds: float) -> Callable[[Route], None]:
    """The server's answer, as a slow line brings it."""

    def hold(route: Route) -> None:
        answer = route.fetch(max_redirects=0)
        time.sleep(seconds)
        route.fulfill(response=answer)

    return hold


def test_fields_that_come_late_come_all_the_same(visit: Visiting) -> None:
    page = visit().page
    page.goto("/jobs/new")
    page.route("**/jobs/new/fields", later(0.6))
    page.get_by_role("group", name="source").get_by_label("type", exact=True).select_option("generate")
    expect(page.get_by_label("distribution")).to_be_visible()
    expect(page.locator("#curl")).to_contain_text('"type": "generate"')


def test_what_is_typed_while_fields_are_on_their_way_stays(visit: Visiting) -> None:
    page = visit().page
    page.goto("/jobs/new")
    held: list[Route] = []

    def hold(route: Route) -> None:
        held.append(route)

    page.route("**/jobs/new/fields", hold, times=1)
    with page.expect_request("**/jobs/new/fields"):
        page.get_by_label("op", exact=True).select_option("dot")
    page.get_by_label("values").fill("7, 8, 9")
    held[0].continue_()
    expect(page.get_by_role("group", name="other")).to_be_visible()
    expect(page.get_by_role("group", name="source").get_by_label("values")).to_have_value("7, 8, 9")


def test_more_options_stay_open_when_other_fields_come(visit: Visiting) -> None:
    page = visit().page
    page.goto("/jobs/new")
    page.get_by_text("More options").click()
    page.get_by_label("op", exact=True).select_option("dot")
    expect(page.get_by_role("group", name="other")).to_be_visible()
    expect(page.get_by_label("tags")).to_be_visible()


def test_what_was_typed_is_there_again_after_going_back(visit: Visiting) -> None:
    page = visit().page
    page.goto("/jobs/new")
    source = page.get_by_role("group", name="source")
    source.get_by_label("type", exact=True).select_option("generate")
    source.get_by_label("n", exact=True).fill("2^12")
    expect(page.locator("#curl")).to_contain_text('"n": 4096')
    page.get_by_role("link", name="Presets").click()
    expect(page.get_by_role("heading", name="Presets")).to_be_visible()
    page.go_back()
    expect(source.get_by_label("n", exact=True)).to_have_value("2^12")
    expect(source.get_by_label("type", exact=True)).to_have_value("generate")
    expect(page.locator("#curl")).to_contain_text('"n": 4096')


def test_two_clicks_on_a_slow_line_run_a_preset_once(visit: Visiting, dashboard: Dashboard) -> None:
    page = visit().page
    page.goto("/presets/p34-coordination")
    page.route("**/presets/*/run", later(1))
    page.evaluate("""() => {
        const run = document.querySelector("main form button");
        run.click();
        setTimeout(() => run.click(), 300);
    }""")
    expect(page).to_have_url(re.compile(r"/jobs/[0-9a-f-]{36}$"))
    with dashboard.client() as client:
        assert len([job for job in client.jobs(kind="preset") if job.spec["preset"] == "p34-coordination"]) == 1


def test_a_form_sent_twice_makes_one_job(visit: Visiting, dashboard: Dashboard) -> None:
    page = visit().page
    page.goto("/jobs/new")
    page.get_by_text("More options").click()
    page.get_by_label("tags").fill("sent=twice")
    page.get_by_role("button", name="Submit").dblclick()
    expect(page).to_have_url(re.compile(r"/jobs/[0-9a-f-]{36}$"))
    with dashboard.client() as client:
        assert len(client.jobs(tags=["sent:twice"])) == 1


def test_a_job_is_run_again_with_its_spec_in_the_form(visit: Visiting, dashboard: Dashboard) -> None:
    page = visit().page
    job = dashboard.ended({**SUM, "op": "mean", "tags": {"course": "p05"}})
    page.goto(f"/jobs/{job}")
    page.get_by_role("link", name="Run again").click()
    expect(page.get_by_label("op", exact=True)).to_have_value("mean")
    expect(page.get_by_label("values")).to_have_value("1e8, 1, -1e8")


def test_a_column_is_chosen_from_those_that_a_look_into_the_file_finds(visit: Visiting, dashboard: Dashboard) -> None:
    table = pyarrow.table({"region": ["EU", "US", "EU"], "price": [1.5, None, 3.0], "units": [1, 2, 3]})
    pyarrow.parquet.write_table(table, dashboard.data_dir.parent / "data" / "sales.parquet")
    page = visit().page
    page.goto("/jobs/new")
    source = page.get_by_role("group", name="source")
    source.get_by_label("type", exact=True).select_option("table")
    source.get_by_label("path", exact=True).fill("sales.parq")
    source.get_by_role("button", name="Look into the file").click()
    expect(source.get_by_label("path", exact=True)).to_have_accessible_description(re.compile("no such file"))
    source.get_by_label("path", exact=True).fill("sales.parquet")
    source.get_by_role("button", name="Look into the file").click()
    column = source.get_by_role("combobox", name="column")
    expect(column.get_by_role("option")).to_have_text(["–", "price (float64, 3, 1 null)", "units (int64, 3)"])
    column.select_option("price")
    expect(page.locator("#curl")).to_contain_text('"column": "price"')
    page.get_by_role("button", name="Submit").click()
    expect(page.get_by_text("4.5", exact=True).first).to_be_visible()


def test_groups_are_made_of_columns_that_the_file_has(visit: Visiting) -> None:
    page = visit().page
    page.goto("/jobs/new?kind=groupby")
    buffer = b"region,price\nEU,1.5\nUS,2\nEU,3\n"
    page.locator("[data-uploads]").set_input_files({"name": "by.csv", "mimeType": "text/csv", "buffer": buffer})
    page.get_by_role("group", name="by").get_by_role("checkbox", name="region").check()
    first = page.get_by_role("group", name="aggregations 1")
    first.get_by_role("combobox", name="column").select_option("price")
    page.get_by_role("button", name="Another").click()
    second = page.get_by_role("group", name="aggregations 2")
    second.get_by_label("op", exact=True).select_option("quantile")
    second.get_by_role("combobox", name="column").select_option("price")
    page.get_by_role("button", name="Another").click()
    expect(page.get_by_role("group", name="aggregations 3")).to_be_visible()
    second.get_by_text("Options").click()
    second.get_by_label("q", exact=True).fill("0.9")
    expect(page.locator("#curl")).to_contain_text('"by": ["region"]')
    expect(page.locator("#curl")).to_contain_text('{"op": "quantile", "column": "price", "q": 0.9}')
    page.get_by_role("button", name="Submit").click()
    expect(page.get_by_text("4.5", exact=True).first).to_be_visible()


def test_a_file_that_is_dropped_becomes_the_source_and_offers_its_columns(visit: Visiting) -> None:
    page = visit().page
    page.goto("/jobs/new")
    page.locator("[data-uploads]").set_input_files(
        {"name": "own.csv", "mimeType": "text/csv", "buffer": b"a,b\n1,2\n3,4\n"}
    )
    source = page.get_by_role("group", name="source")
    expect(source.get_by_label("type", exact=True)).to_have_value("dataset")
    source.get_by_role("combobox", name="column").select_option("b")
    expect(page.locator("#curl")).to_contain_text('"column": "b"')
    page.get_by_role("button", name="Submit").click()
    expect(page.get_by_text("6", exact=True).first).to_be_visible()


def test_a_file_has_a_page_after_it_was_dropped_on_the_list(visit: Visiting) -> None:
    page = visit(width=375).page
    page.goto("/datasets")
    page.locator("[data-upload]").evaluate("""zone => {
        const dropped = new DataTransfer();
        dropped.items.add(new File(["x,y\\n1,2\\n"], "dropped.csv"));
        zone.dispatchEvent(new DragEvent("drop", { dataTransfer: dropped, bubbles: true, cancelable: true }));
    }""")
    expect(page).to_have_url(re.compile(r"/datasets/[0-9a-f]{64}$"))
    expect(page.get_by_role("heading", name="dropped.csv")).to_be_visible()
    page.get_by_role("link", name="Reduce y").click()
    expect(page.get_by_role("combobox", name="column").or_(page.get_by_label("column")).first).to_have_value("y")
    page.goto("/datasets")
    page.locator("[data-uploads]").set_input_files({"name": "no.bin", "mimeType": "", "buffer": b"\x00\x01\x02"})
    expect(page.locator("[data-upload]").get_by_role("status")).to_have_class("error")
