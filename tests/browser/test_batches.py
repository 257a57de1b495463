"""A batch is one row of the list of jobs, which opens to a page of its own."""

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from playwright.sync_api import Dialog, Page, expect

from tests.support.visits import LONG, SUM, Dashboard, Visit
from warpfold.client.batches import Batch

Visiting = Callable[..., Visit]

EMPTY: Mapping[str, Any] = {
    "kind": "reduce",
    "op": "max",
    "source": {"type": "values", "values": [], "dtype": "int64"},
}


def submitted(dashboard: Dashboard, specs: list[Mapping[str, Any]], **options: Any) -> Batch:
    with dashboard.client() as client:
        return client.submit_many(specs, **options)


def test_a_batch_is_a_row_that_opens_and_is_followed_to_its_end(visit: Visiting, dashboard: Dashboard) -> None:
    visited = visit()
    page = visited.page
    page.goto("/jobs?tag=opens")
    expect(page.get_by_text("No job matches.")).to_be_visible()
    batch = submitted(dashboard, [LONG, EMPTY, SUM, SUM], name="four", tags={"opens": "yes"})
    row = page.locator("tbody tr")
    expect(row).to_have_count(1)
    expect(row).to_contain_text("four of 4 jobs")
    page.locator(f"#batch-{batch.id}").click()
    expect(page).to_have_url(re.compile(f"/batches/{batch.id}$"))
    expect(page.locator(".state-line .status")).to_have_text("running")
    expect(page.get_by_role("img", name=re.compile("4 queued|running"))).to_be_attached()
    with dashboard.client() as client:
        client.cancel(next(iter(batch.jobs)))
    expect(page.locator(".state-line .status")).to_have_text("failed")
    expect(page.get_by_text("4 of 4 ended")).to_be_visible()
    expect(page.get_by_role("group", name="First failures")).to_contain_text("max of no elements is undefined")
    polled = len(visited.answers(f"/live/batches/{batch.id}"))
    page.wait_for_timeout(1500)  # for what must not happen
    assert len(visited.answers(f"/live/batches/{batch.id}")) == polled
    page.locator("#count-succeeded").click()
    expect(page.locator("tbody tr")).to_have_count(2)
    page.get_by_role("link", name="a batch").click()
    with page.expect_download() as download:
        page.get_by_role("link", name="JSON lines").click()
    assert download.value.suggested_filename == "four.jsonl"
    assert len(download.value.path().read_text().splitlines()) == 4
    page.locator("#count-failed").click()
    expect(page.locator("tbody tr")).to_have_count(1)


def test_a_batch_is_cancelled_after_a_question(visit: Visiting, dashboard: Dashboard) -> None:
    page = visit().page
    batch = submitted(dashboard, [LONG, LONG], tags={"cancelled": "batch"})
    page.goto(f"/batches/{batch.id}")
    page.once("dialog", Dialog.dismiss)
    page.get_by_role("button", name="Cancel").click()
    expect(page.locator(".state-line .status")).to_have_text("running")
    page.once("dialog", Dialog.accept)
    page.get_by_role("button", name="Cancel").click()
    expect(page.locator(".state-line .status")).to_have_text("cancelled")
    expect(page.get_by_role("img", name="2 cancelled")).to_be_attached()
    page.goto("/jobs?tag=cancelled")
    expect(page.locator(f"#batch-{batch.id}")).to_be_visible()
    expect(page.locator("tbody").get_by_role("button", name="Cancel")).to_have_count(0)


def test_filters_stay_in_the_address_through_pages_polls_and_the_way_back(
    visit: Visiting, dashboard: Dashboard
) -> None:
    visited = visit()
    page = visited.page
    with dashboard.client() as client:
        client.submit_many([SUM] * 60, tags={"paged": "sixty"}).wait()
    page.goto("/jobs")
    page.get_by_label("succeeded").check()
    expect(page).to_have_url(re.compile(r"\?status=succeeded$"))
    page.get_by_text("More filters").click()
    for label, name, value in (
        ("Tag", "tag", "paged:sixty"),
        ("Since", "since", "1h"),
        ("until", "until", "2100-01-01"),
        ("Owner", "owner", "ann"),
        ("Text", "text", "sixty"),
    ):
        field = page.get_by_role("form", name="Filters").get_by_label(label, exact=True).last
        field.fill(value)
        field.press("Enter")
        expect(page).to_have_url(re.compile(rf"\b{name}="))
    expect(page.locator("tbody tr")).to_have_count(1)
    page.get_by_role("link", name="those that match").click()
    address = page.url
    for part in ("status=succeeded", "owner=ann", "tag=paged%3Asixty", "text=sixty", "since=1h", "until=", "batch="):
        assert part in address
    expect(page.locator("tbody tr")).to_have_count(50)
    page.wait_for_event("response", lambda answer: "/live/jobs" in answer.url and answer.status == 304)
    page.get_by_role("link", name="Older").click()
    expect(page.locator("tbody tr")).to_have_count(10)
    assert page.url.startswith(f"{address}&cursor=")
    expect_filters(page)
    page.reload()
    expect(page.locator("tbody tr")).to_have_count(10)
    expect_filters(page)
    page.go_back()
    expect(page).to_have_url(address)
    expect(page.locator("tbody tr")).to_have_count(50)
    expect_filters(page)
    page.get_by_label("failed").check()
    expect(page).to_have_url(re.compile(r"(?=.*\bbatch=)(?=.*\bstatus=failed)"))


def expect_filters(page: Page) -> None:
    """The form shows what the address says."""
    expect(page.get_by_label("succeeded")).to_be_checked()
    expect(page.get_by_label("failed")).not_to_be_checked()
    for label, value in (("Owner", "ann"), ("Text", "sixty"), ("Since", "1h"), ("until", "2100-01-01")):
        expect(page.get_by_label(label, exact=True)).to_have_value(value)
    expect(page.get_by_label("Tag", exact=True).first).to_have_value("paged:sixty")


def test_a_file_of_specs_is_looked_at_and_submitted(visit: Visiting, tmp_path: Path) -> None:
    page = visit().page
    file = tmp_path / "specs.jsonl"
    file.write_text("\n".join(json.dumps(spec) for spec in (SUM, {**SUM, "op": "max"}, {**SUM, "op": "sun"})))
    page.goto("/jobs/new")
    page.get_by_role("link", name="many at once").click()
    page.get_by_label("name").fill("from a file")
    page.get_by_label("or a file of JSON lines").set_input_files(file)
    expect(page.get_by_label("specs", exact=True)).to_have_value(re.compile("sun"))
    page.get_by_role("button", name="Submit").click()
    expect(page.get_by_role("alert")).to_contain_text("line 3: op: ")
    specs = page.get_by_label("specs", exact=True)
    specs.fill(specs.input_value().replace("sun", "min"))
    page.get_by_role("button", name="Submit").click()
    expect(page).to_have_url(re.compile(r"/batches/[0-9a-f-]{36}$"))
    expect(page.get_by_role("heading", name="from a file")).to_be_visible()
    expect(page.locator(".state-line .status")).to_have_text("succeeded")
