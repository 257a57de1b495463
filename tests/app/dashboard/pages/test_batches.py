"""The page of a batch, as far as HTTP goes."""

from collections.abc import Callable

from tests.support.api import Api
from tests.support.batches import batch_of, shown, specs, submitted
from tests.support.window import Window
from warpfold.app.jobs import leases
from warpfold.contract.states import Reason

Windows = Callable[..., Window]


def test_a_page_says_how_the_jobs_stand_and_which_failed_first(ann: Window, api: Api) -> None:
    batch = submitted(api.client(), {"specs": specs(4), "name": "<seeds>", "tags": {"course": "p05"}})
    page = f"/batches/{batch['id']}"
    assert "&lt;seeds&gt;" in ann.get(page).text
    assert "0 of 4 ended" in ann.get(page).text
    assert "First failures" not in ann.get(page).text
    failed = batch["jobs"][2]
    api.database.run(leases.fail, api.claim(failed), Reason.INVALID_INPUT, "a <sentence>")
    api.finish(api.claim(batch["jobs"][0]))
    text = ann.get(page).text
    assert "2 of 4 ended" in text
    assert f'href="/jobs/{failed}"' in text
    assert "invalid_input: a &lt;sentence&gt;" in text
    assert f'href="/jobs?batch={batch["id"]}&amp;status=failed"' in text
    assert f'hx-get="/live{page}"' in text
    for job_id in (batch["jobs"][1], batch["jobs"][3]):
        api.finish(api.claim(job_id))
    text = ann.get(page).text
    assert "4 of 4 ended" in text
    assert "hx-get" not in text, "what has ended polls no more"


def test_results_are_downloaded_from_the_page(ann: Window, api: Api) -> None:
    batch = batch_of(api, 2)
    api.finish(api.claim(batch["jobs"][0]))
    text = ann.get(f"/batches/{batch['id']}").text
    for form, begin in (("jsonl", b'{"index": 0'), ("parquet", b"PAR1")):
        address = f"/v1/batches/{batch['id']}/results?format={form}"
        assert f'href="{address}"' in text
        assert ann.get(address).content.startswith(begin)


def test_an_unchanged_poll_is_a_304(ann: Window, api: Api) -> None:
    batch = batch_of(api, 2)
    live = f"/live/batches/{batch['id']}"
    first = ann.get(live)
    assert first.status_code == 200
    assert ann.get(live, headers={"If-None-Match": first.headers["ETag"]}).status_code == 304
    tag = ann.get(f"/batches/{batch['id']}").text.partition('data-etag="')[2].partition('"')[0]
    assert ann.get(live, headers={"If-None-Match": tag.replace("&#34;", '"')}).status_code == 304


def test_only_its_owner_and_admins_cancel_a_batch(window: Windows, api: Api) -> None:
    batch, other = batch_of(api, 2, "bob"), batch_of(api, 1, "bob")
    path = f"/batches/{batch['id']}"
    for user in ("vera", "ann"):
        visitor = window(user)
        assert "Cancel" not in visitor.get(path).text
        assert visitor.post(f"{path}/cancel").status_code == 403
    bob = window("bob")
    assert bob.post(f"{path}/cancel", headers={"Origin": "https://elsewhere.example"}).status_code == 403
    assert shown(api.client(), batch)["progress"]["queued"] == 2
    assert f'action="{path}/cancel"' in bob.get(path).text
    answer = bob.post(f"{path}/cancel", data={"next": "/jobs?owner=bob"})
    assert (answer.status_code, answer.headers["Location"]) == (303, "/jobs?owner=bob")
    assert shown(api.client(), batch)["status"] == "cancelled"
    assert window("root").post(f"/batches/{other['id']}/cancel").headers["Location"] == f"/batches/{other['id']}"


def test_a_batch_that_is_not_there_is_a_page_that_says_so(ann: Window) -> None:
    for path in ("/batches/00000000-0000-4000-8000-000000000000", "/batches/none"):
        answer = ann.get(path)
        assert answer.status_code in (404, 422)
        assert "<h1>" in answer.text
