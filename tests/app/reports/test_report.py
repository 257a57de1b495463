import html
from typing import Any

import httpx
import pytest

from tests.support.api import RESULT, Api
from warpfold.app.jobs import leases
from warpfold.app.reports.report import Report, Table
from warpfold.contract.json_value import hex_of
from warpfold.contract.states import Reason

EVIL = "</td><script>alert(1)</script>|`*[x](javascript:1)"


def finished(api: Api, value: Any = 1.0, **changes: Any) -> str:
    job_id = api.submit(**changes)
    api.finish(api.claim(job_id), {**RESULT, "value": value, "hex": hex_of(value)})
    return job_id


def report(http: httpx.Client, job_id: str) -> Report:
    response = http.get(f"/v1/reports/{job_id}")
    assert response.status_code == 200, response.text
    return Report.model_validate_json(response.content)


def test_given_values_are_added_in_fractions_and_compared_bit_for_bit(api: Api, http: httpx.Client) -> None:
    compared = report(http, finished(api)).comparison
    assert compared is not None
    assert (compared.expected, compared.measured, compared.agrees, compared.relative_error) == (1.0, 1.0, True, 0.0)
    assert compared.expected_hex == "0x1.0000000000000p+0"


def test_a_value_that_is_off_is_told_with_its_error(api: Api, http: httpx.Client) -> None:
    compared = report(http, finished(api, 0.0)).comparison
    assert compared is not None
    assert (compared.agrees, compared.relative_error) == (False, 1.0)


def test_negative_zero_is_not_zero(api: Api, http: httpx.Client) -> None:
    source = {"type": "values", "values": [-0.0, -0.0], "dtype": "float32"}
    for value, agrees in ((-0.0, True), (0.0, False)):
        compared = report(http, finished(api, value, source=source)).comparison
        assert compared is not None
        assert compared.agrees is agrees


def test_a_short_generated_array_is_checked_too(api: Api, http: httpx.Client) -> None:
    source = {"type": "generate", "distribution": "arange", "n": 1024, "dtype": "float32"}
    compared = report(http, finished(api, 523776.0, source=source)).comparison
    assert compared is not None
    assert (compared.expected, compared.agrees) == (523776.0, True)


def test_what_is_not_known_is_said_to_be_not_known(api: Api, http: httpx.Client) -> None:
    long = {"type": "generate", "distribution": "zeros", "n": 10**6}
    for source in (long, {"type": "path", "path": "x.npy"}):
        compared = report(http, finished(api, source=source)).comparison
        assert compared is not None
        assert (compared.expected, compared.agrees) == (None, None)
        assert compared.basis.startswith("not known")


def test_a_failed_job_has_a_report_with_the_reason_and_no_result(api: Api, http: httpx.Client) -> None:
    job_id = api.submit()
    api.database.run(leases.fail, api.claim(job_id), Reason.TIMEOUT, "It took too long.")
    shown = report(http, job_id)
    assert (shown.reason, shown.error, shown.comparison, shown.result) == ("timeout", "It took too long.", None, None)
    page = http.get(f"/v1/reports/{job_id}", headers={"Accept": "text/html"}).text
    assert "It took too long." in page


def test_before_the_end_there_is_none(api: Api, http: httpx.Client) -> None:
    job_id = api.submit()
    assert http.get(f"/v1/reports/{job_id}").status_code == 409


@pytest.mark.parametrize(
    ("accept", "media_type"),
    [
        ("application/json", "application/json"),
        ("text/html,*/*;q=0.8", "text/html; charset=utf-8"),
        ("text/markdown", "text/markdown; charset=utf-8"),
        ("*/*", "application/json"),
    ],
)
def test_the_form_is_what_was_asked_for(api: Api, http: httpx.Client, accept: str, media_type: str) -> None:
    response = http.get(f"/v1/reports/{finished(api)}", headers={"Accept": accept})
    assert (response.status_code, response.headers["Content-Type"]) == (200, media_type)
    assert response.headers["Vary"] == "Accept"


def test_a_form_that_is_not_offered_is_406(api: Api, http: httpx.Client) -> None:
    response = http.get(f"/v1/reports/{finished(api)}", headers={"Accept": "image/png"})
    assert response.status_code == 406
    assert response.headers["Content-Type"] == "application/problem+json"


@pytest.mark.parametrize("accept", ["text/html", "text/markdown"])
def test_value_timings_device_and_provenance_are_in_the_text(api: Api, http: httpx.Client, accept: str) -> None:
    text = html.unescape(http.get(f"/v1/reports/{finished(api)}", headers={"Accept": accept}).text)
    text = text.replace("\\", "")
    for part in ("1.0 = 0x1.0000000000000p+0", "agree, bit for bit", "137 µs", RESULT["device"]["name"], "float32"):
        assert part in text
    assert RESULT["provenance"]["spec_sha256"] in text


def test_what_users_wrote_is_escaped_in_html(api: Api, http: httpx.Client) -> None:
    response = http.get(f"/v1/reports/{finished(api, tags={'note': EVIL})}", headers={"Accept": "text/html"})
    assert "<script" not in response.text
    assert html.escape("<script>") in response.text
    assert response.headers["Content-Security-Policy"].startswith("default-src 'none'")
    assert response.headers["X-Content-Type-Options"] == "nosniff"


def test_what_users_wrote_is_escaped_in_markdown(api: Api, http: httpx.Client) -> None:
    job_id = finished(api, tags={"note": f"{EVIL}\n# not a heading"})
    text = http.get(f"/v1/reports/{job_id}", headers={"Accept": "text/markdown"}).text
    [row] = [line for line in text.splitlines() if line.startswith("| tag note")]
    assert "\\<script\\>" in row
    assert "\\|" in row
    assert "\\[x\\]" in row
    assert "not a heading" in row


def test_a_file_name_with_markup_is_escaped_in_the_title(api: Api, http: httpx.Client) -> None:
    job_id = finished(api, source={"type": "path", "path": "<b>x</b>.npy"})
    text = http.get(f"/v1/reports/{job_id}", headers={"Accept": "text/html"}).text
    assert "<b>" not in text


def test_dot_products_and_variances_are_checked_with_what_they_take(api: Api, http: httpx.Client) -> None:
    source = {"type": "values", "values": [1e16, 1, -1e16], "dtype": "float64"}
    other = {"type": "values", "values": [1, 3, 1], "dtype": "float32"}
    shown = report(http, finished(api, 3.0, op="dot", source=source, other=other))
    assert shown.comparison is not None
    assert (shown.comparison.expected, shown.comparison.agrees) == (3.0, True)
    assert "3 given values as float64 with 3 given values as float32" in shown.asked
    shown = report(http, finished(api, 2.0, op="var", ddof=1, source={**other, "values": [1, 3]}))
    assert shown.comparison is not None
    assert (shown.comparison.expected, shown.comparison.agrees) == (2.0, True)
    assert "ddof 1" in shown.asked


def test_numbers_stand_at_the_right_of_their_column_and_words_at_the_left() -> None:
    rows = (("a", "1,000", "1.2e-07", "–", "1.5 – 1.7", "18224d80"), ("b", "10", "0", "97.0 %", "–", "2026-11-21"))
    table = Table(title="", columns=("name", "n", "error", "share", "interval", "commit"), rows=rows)
    assert [table.is_numeric(column) for column in range(6)] == [False, True, True, True, True, False]
