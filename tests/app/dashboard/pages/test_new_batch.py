"""The form of a new batch, as far as HTTP goes."""

import json
from collections.abc import Callable
from typing import Any

import httpx

from tests.support.api import THREE_VALUES, Api
from tests.support.batches import specs
from tests.support.window import Window

Windows = Callable[..., Window]

SWEEP = {
    "spec": {"kind": "reduce", "source": {"type": "generate", "distribution": "normal", "n": 10}},
    "over": {"source.seed": [1, 2, 3], "op": ["sum", "max"]},
}


def sent(window: Window, text: str, **fields: str) -> httpx.Response:
    return window.post("/batches/new", data={"nonce": "abc", "specs": text, **fields})


def batch_of(answer: httpx.Response, api: Api) -> dict[str, Any]:
    """The batch that an answer leads to."""
    assert answer.status_code == 303, answer.text
    batch: dict[str, Any] = api.client().get(f"/v1{answer.headers['Location']}").json()
    return batch


def test_a_sweep_is_submitted_with_its_name_and_tags(ann: Window, api: Api) -> None:
    batch = batch_of(sent(ann, json.dumps(SWEEP, indent=2), name="seeds", tags="course=p05, run = 7"), api)
    assert (batch["name"], batch["count"], batch["tags"]) == ("seeds", 6, {"course": "p05", "run": "7"})


def test_the_example_in_the_form_can_be_sent_as_it_stands(ann: Window, api: Api) -> None:
    page = ann.get("/batches/new").text
    example = page.partition('hint">\n')[2].partition("</textarea>")[0].replace("&#34;", '"')
    assert batch_of(sent(ann, example), api)["count"] == 6


def test_lines_are_specs_and_their_numbers_stay_what_they_are(ann: Window, api: Api) -> None:
    source = '{"type": "values", "values": [-0.0], "dtype": "float64"}'
    line = f'{{"kind": "reduce", "tags": {{"a": "\u2028"}}, "source": {source}}}'
    batch = batch_of(sent(ann, f"{line}\n\n{json.dumps(THREE_VALUES)}\n"), api)
    assert batch["count"] == 2
    jobs = api.client().get("/v1/jobs", params={"batch": batch["id"]}).text
    assert '"values":[-0.0]' in jobs.replace(" ", "")


def test_a_form_sent_twice_makes_one_batch(ann: Window, api: Api) -> None:
    text = json.dumps(THREE_VALUES)
    first, second = (batch_of(sent(ann, text), api) for _ in range(2))
    assert first["id"] == second["id"]
    assert batch_of(sent(ann, f"{text}\n{text}"), api)["id"] != first["id"]


def test_what_is_wrong_is_named_by_its_line_and_nothing_is_kept(ann: Window, api: Api) -> None:
    good = json.dumps(THREE_VALUES)
    wrong = json.dumps({**THREE_VALUES, "op": "sun"})
    for text, message in (
        (f"{good}\n\n{wrong}", "<li>line 3: op: "),
        (f"{good}\n{{not json", "<li>line 2: is not JSON that can be read: "),
        (f"\n{good}\n{'[' * 20_000}", "<li>line 3: is not JSON that can be read: "),
        (f'{{"n": {"9" * 5000}}}', "<li>line 1: is not JSON that can be read: "),
        ("", "<li>specs: write a spec a line, or a sweep"),
        (json.dumps({**SWEEP, "over": {"op": ["sun"]}}), "<li>sweep.over.op[0]: "),
    ):
        answer = sent(ann, text, name="mine")
        assert answer.status_code == 422
        assert message in answer.text, answer.text
        assert 'value="mine"' in answer.text
    assert "should be name=value" in sent(ann, good, tags="p05").text
    assert api.client().get("/v1/batches").json()["items"] == []


def test_a_large_file_is_read_beside_the_event_loop(ann: Window, api: Api) -> None:
    lines = "\n".join(json.dumps(spec) for spec in specs(700))
    assert len(lines) > 64 << 10
    assert batch_of(sent(ann, lines), api)["count"] == 700


def test_a_viewer_and_another_site_submit_nothing(window: Windows, ann: Window, api: Api) -> None:
    vera = window("vera")
    assert vera.get("/batches/new").status_code == 403
    assert sent(vera, json.dumps(SWEEP)).status_code == 403
    headers = {"Origin": "https://elsewhere.example"}
    assert ann.post("/batches/new", data={"specs": json.dumps(SWEEP)}, headers=headers).status_code == 403
    assert api.client().get("/v1/batches").json()["items"] == []
