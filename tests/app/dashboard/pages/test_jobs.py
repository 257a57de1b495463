"""The list of jobs, as far as HTTP goes."""

import re

from tests.support.api import Api
from tests.support.batches import batch_of, submitted
from tests.support.waiting import until
from tests.support.window import Window

LINK = re.compile(r'id="(?:job|batch)-([0-9a-f-]{36})"')


def listed(window: Window, path: str) -> list[str]:
    answer = window.get(path)
    assert answer.status_code == 200, answer.text
    return LINK.findall(answer.text)


def test_a_batch_is_one_row_that_opens(ann: Window, api: Api) -> None:
    alone, batch = api.submit(), batch_of(api, 3)
    assert listed(ann, "/jobs") == [batch["id"], alone]
    text = ann.get("/jobs").text
    assert f'href="/batches/{batch["id"]}"' in text
    assert "1 job, 1 batch" in text
    api.finish(api.claim(batch["jobs"][0]))
    assert "<span>2 queued</span>, <span>1 succeeded</span>" in ann.get("/live/jobs?status=succeeded").text


def test_a_page_that_is_opened_shows_what_was_done_before(ann: Window, api: Api) -> None:
    """Windows that poll share what was read within the last second; a window that opens a page does not."""
    first = api.submit()
    for path, polled in (("/jobs", "/live/jobs"), ("/", "/live/now")):
        assert first in ann.get(path).text, path
        ann.get(polled)
        later = api.submit()
        assert later in ann.get(path).text, path
        assert later in ann.get(polled).text, "polls share what the page has read"


def test_the_jobs_of_a_batch_are_listed_where_they_are_asked_for(ann: Window, api: Api) -> None:
    alone, batch, other = api.submit(), batch_of(api, 3), batch_of(api, 1)
    api.finish(api.claim(batch["jobs"][1]))
    jobs = batch["jobs"]
    assert listed(ann, f"/jobs?batch={batch['id']}") == jobs[::-1]
    assert listed(ann, f"/jobs?batch={batch['id']}&status=succeeded") == [jobs[1]]
    assert listed(ann, "/jobs?batched=on") == [other["jobs"][0], *jobs[::-1], alone]
    row = ann.get("/jobs?status=succeeded&kind=reduce").text
    assert f"/jobs?status=succeeded&amp;kind=reduce&amp;batch={batch['id']}" in row
    assert f'href="/batches/{batch["id"]}"' in ann.get(f"/jobs/{jobs[0]}").text


def test_an_id_in_the_text_opens_the_page_of_its_job_or_batch(ann: Window, api: Api) -> None:
    alone, batch = api.submit(), batch_of(api, 3)
    for text, page in (
        (alone, f"/jobs/{alone}"),
        (alone[:8].upper(), f"/jobs/{alone}"),
        (f"http://host/jobs/{alone}/", f"/jobs/{alone}"),
        (batch["id"][:13], f"/batches/{batch['id']}"),
        (batch["jobs"][1], f"/jobs/{batch['jobs'][1]}"),
    ):
        answer = ann.get("/jobs", params={"text": text}, follow_redirects=False)
        assert (answer.status_code, answer.headers.get("Location")) == (303, page), text
    unknown = ann.get("/jobs?text=00000000-0000-4000-8000-000000000000", follow_redirects=False)
    assert unknown.status_code == 200
    assert "No job matches." in unknown.text


def test_a_batch_that_is_no_id_is_named(ann: Window) -> None:
    answer = ann.get("/jobs?batch=none")
    assert answer.status_code == 422
    assert "should be the id of a batch" in answer.text


def test_a_poll_of_the_list_sees_what_changes_in_a_batch(ann: Window, api: Api) -> None:
    batch = batch_of(api, 3)
    live = "/live/jobs?tag=number&owner=ann"
    first = ann.get(live)
    assert ann.get(live, headers={"If-None-Match": first.headers["ETag"]}).status_code == 304
    api.finish(api.claim(batch["jobs"][0]))
    until(lambda: "1 succeeded" in ann.get(live, headers={"If-None-Match": first.headers["ETag"]}).text)


def test_pages_keep_the_filters(ann: Window, api: Api) -> None:
    for _ in range(51):
        submitted(api.client(), {"specs": [{"kind": "reduce", "source": {"type": "values", "values": [1.0]}}]})
    query = "status=queued&owner=ann"
    first = listed(ann, f"/jobs?{query}")
    assert len(first) == 50
    older = ann.get(f"/jobs?{query}").text.partition('rel="next"')[0].rpartition('href="')[2].partition('"')[0]
    assert older.startswith("/jobs?status=queued&amp;owner=ann&amp;cursor=")
    assert len(listed(ann, older.replace("&amp;", "&"))) == 1


def test_the_first_page_shows_a_batch_once(ann: Window, api: Api) -> None:
    batch = batch_of(api, 9)
    assert ann.get("/").text.count(f'href="/batches/{batch["id"]}"') == 1


def test_ticked_jobs_are_tagged_run_again_cancelled_and_deleted(ann: Window, api: Api) -> None:
    first, second = api.submit(), api.submit()

    def do(deed: str, *jobs: str, tag: str = "") -> tuple[int, str]:
        answer = ann.post("/jobs/selected?next=/jobs?owner=ann", data={"do": deed, "job": [*jobs], "tag": tag})
        return answer.status_code, answer.headers.get("Location", answer.text)

    back = (303, "/jobs?owner=ann")
    assert do("tag", first, second, tag="study:x y") == back
    assert listed(ann, "/jobs?tag=study:x+y") == [second, first]
    assert do("cancel", first) == back
    assert listed(ann, "/jobs?status=cancelled") == [first]
    assert do("again", first, second) == back
    assert len(listed(ann, "/jobs?status=queued")) == 3
    status, page = do("delete", first, second)
    assert (status, "1 of 2 jobs stay as they are" in page, "cancel it first" in page) == (409, True, True)
    assert first not in listed(ann, "/jobs")
    assert do("tag", second)[0] == 422


def test_others_change_nothing_that_they_see(ann: Window, api: Api) -> None:
    job = api.submit()
    for user, refusal in (("vera", 403), ("bob", 409)):
        with Window(api) as window:
            window.sign_in(user)
            assert ("/jobs/selected" in window.get("/jobs").text) == (user == "bob")
            assert "Name, note and tags" not in window.get(f"/jobs/{job}").text
            assert window.post("/jobs/selected", data={"do": "cancel", "job": [job]}).status_code == refusal
            assert window.post(f"/jobs/{job}/edit", data={"name": "mine"}).status_code == 403
    assert listed(ann, "/jobs?status=queued") == [job]


def test_the_page_of_a_job_changes_its_name_its_note_and_its_tags_and_deletes_it(ann: Window, api: Api) -> None:
    job = api.submit()
    edited = {"name": "first sweep", "note": "<b>seen</b>", "tags": "study:x\r\nrun: 7 \r\n\r\nkept"}
    assert ann.post(f"/jobs/{job}/edit", data=edited).headers["Location"] == f"/jobs/{job}"
    text = ann.get(f"/jobs/{job}").text
    for part in ("<h1>first sweep</h1>", "&lt;b&gt;seen&lt;/b&gt;", ">kept\nrun: 7\nstudy:x</textarea>"):
        assert part in text
    assert "first sweep" in ann.get("/jobs").text
    assert ann.post(f"/jobs/{job}/edit", data={"tags": "a b"}).status_code == 422
    assert ann.post(f"/jobs/{job}/delete").status_code == 409
    ann.post(f"/jobs/{job}/cancel")
    assert ann.post(f"/jobs/{job}/delete").headers["Location"] == "/jobs"
    assert ann.get(f"/jobs/{job}").status_code == 404
