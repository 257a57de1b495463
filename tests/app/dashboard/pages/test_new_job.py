import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import urlencode

import pytest
from pydantic import TypeAdapter

from tests.support.api import Api
from tests.support.window import Window
from warpfold.app.dashboard.forms.submission import MOST_FIELDS
from warpfold.app.http.large_bodies import LARGE_BYTES, LargeBodies

LARGE = {"kind": "reduce", "op": "sum", "source.type": "values", "source.values": "0.5 " * 50_000}


@pytest.fixture
def no_validation_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Validating JSON fails in the process of the api."""

    def refuse(*args: Any, **kwargs: Any) -> None:
        raise AssertionError("the event loop would stand still")

    monkeypatch.setattr(TypeAdapter, "validate_json", refuse)


@pytest.mark.usefixtures("no_validation_here")
def test_a_large_form_is_checked_in_a_process_apart(ann: Window, api: Api) -> None:
    assert "would accept this" in ann.post("/jobs/new/preview", data=LARGE).text
    answer = ann.post("/jobs/new", data=LARGE)
    assert answer.status_code == 303, answer.text
    spec = api.client().get(f"/v1{answer.headers['Location']}").json()["spec"]
    assert spec["source"]["values"] == [0.5] * 50_000


@pytest.mark.usefixtures("no_validation_here")
def test_a_large_spec_is_put_into_the_form_by_a_process_apart(ann: Window, api: Api) -> None:
    source = {"type": "values", "values": [0.5] * 50_000, "dtype": "float64"}
    job = api.client().post("/v1/jobs", json={"kind": "reduce", "op": "sum", "source": source}).json()["id"]
    assert ann.get("/jobs/new", params={"from": job}).text.count("0.5, 0.5") > 20_000


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"op": "total"}, "op"),
        ({"source.values": "0.5 " * 50_000 + "x"}, "source-values"),
        ({"source.values": "1 " * 100_001}, "source-values"),
    ],
)
def test_what_is_wrong_with_a_large_form_is_shown_at_its_field_and_everything_stays(
    ann: Window, changes: dict[str, str], field: str
) -> None:
    typed = {**LARGE, **changes}
    answer = ann.post("/jobs/new", data=typed)
    assert answer.status_code == 422
    assert f'id="f-{field}-error"' in answer.text
    assert typed["source.values"] in answer.text


def test_after_a_choice_a_large_form_has_what_was_typed(ann: Window) -> None:
    text = ann.post("/jobs/new/fields", data={**LARGE, "op": "std"}).text
    assert LARGE["source.values"] in text
    assert 'name="ddof"' in text


def test_a_form_of_no_declared_length_is_read_all_the_same(ann: Window) -> None:
    pieces = iter([urlencode(LARGE).encode()])
    headers = {"Content-Type": "application/x-www-form-urlencoded"}
    assert ann.post("/jobs/new", content=pieces, headers=headers).status_code == 303


def test_while_a_large_form_is_read_others_are_served(
    window: Callable[[str], Window], monkeypatch: pytest.MonkeyPatch
) -> None:
    entered, go_on = threading.Event(), threading.Event()
    apart = LargeBodies.apart

    async def held(self: LargeBodies, *args: Any) -> Any:
        entered.set()
        await asyncio.to_thread(go_on.wait, 60)
        return await apart(self, *args)

    monkeypatch.setattr(LargeBodies, "apart", held)
    windows, bob = [window("ann") for _ in range(4)], window("bob")
    with ThreadPoolExecutor(4) as pool:
        sent = [pool.submit(ann.post, "/jobs/new", data=LARGE) for ann in windows]
        try:
            assert entered.wait(60)
            assert bob.get("/jobs").status_code == 200
            assert windows[0].post("/jobs/new/preview", data={"kind": "cluster"}).status_code == 200
        finally:
            go_on.set()
        assert {request.result().status_code for request in sent} == {303}


@pytest.mark.parametrize("path", ["/jobs/new", "/jobs/new/preview", "/jobs/new/fields"])
def test_a_form_of_too_many_fields_is_refused(ann: Window, path: str) -> None:
    body = b"&".join(b"a=" for _ in range(MOST_FIELDS + 1))
    answer = ann.post(path, content=body, headers={"Content-Type": "application/x-www-form-urlencoded"})
    assert answer.status_code == 400
    assert f"at most {MOST_FIELDS} fields" in answer.text


@pytest.mark.parametrize("whole", [True, False])
@pytest.mark.parametrize("path", ["/sign-in", "/sign-out"])
def test_nobody_has_a_large_form_parsed_without_signing_in(
    window: Callable[[None], Window], path: str, whole: bool
) -> None:
    body = b"token=" + b"a" * LARGE_BYTES
    headers = {"Content-Type": "application/x-www-form-urlencoded"}
    answer = window(None).post(path, content=body if whole else iter([body]), headers=headers)
    assert answer.status_code == 413
    assert answer.headers["Content-Type"].startswith("text/html")


def test_a_form_of_another_kind_is_refused(ann: Window) -> None:
    assert ann.post("/jobs/new", files={"kind": b"reduce"}).status_code == 415
