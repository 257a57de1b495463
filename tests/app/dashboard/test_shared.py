import time
from collections.abc import Callable

import pytest

from tests.support.api import Api
from tests.support.window import Window
from warpfold.app.dashboard.shared import KEPT_S


@pytest.mark.parametrize("path", ["/live/jobs", "/live/now"])
def test_an_unchanged_part_is_a_304_without_a_body(ann: Window, api: Api, path: str) -> None:
    api.submit()
    time.sleep(KEPT_S)  # until what the tests before have read is forgotten
    tag = ann.get(path).headers["ETag"]
    answer = ann.get(path, headers={"If-None-Match": tag})
    assert (answer.status_code, answer.content) == (304, b"")
    assert answer.headers["ETag"] == tag


def test_a_jobs_part_changes_with_the_job(ann: Window, api: Api) -> None:
    job = api.submit()
    path = f"/live/jobs/{job}"
    tag = ann.get(path).headers["ETag"]
    assert ann.get(path, headers={"If-None-Match": tag}).status_code == 304
    lease = api.claim(job)
    answer = ann.get(path, headers={"If-None-Match": tag})
    assert answer.status_code == 200
    assert "running" in answer.text
    assert "hx-trigger" in answer.text
    api.finish(lease)
    ended = ann.get(path, headers={"If-None-Match": answer.headers["ETag"]})
    assert "correctly rounded" in ended.text
    assert "hx-trigger" not in ended.text, "a job that has ended is not polled for any more"
    assert ended.headers["HX-Trigger-After-Settle"] == "ended"


def test_the_page_and_its_part_have_the_same_tag(ann: Window, api: Api) -> None:
    job = api.submit()
    tag = ann.get(f"/live/jobs/{job}").headers["ETag"]
    assert tag.strip('"') in ann.get(f"/jobs/{job}").text


def test_another_users_part_is_another(ann: Window, window: Callable[[str], Window], api: Api) -> None:
    job = api.submit("ann")
    path = f"/live/jobs/{job}"
    bobs = window("bob").get(path)
    assert bobs.headers["ETag"] != ann.get(path).headers["ETag"]
    assert "Cancel" not in bobs.text
    assert "Cancel" in ann.get(path).text
