from collections.abc import Callable

import httpx
import pytest

from tests.support.api import RESULT, Api
from tests.support.measurements import POINT, replace, timed
from tests.support.studies import RUN, accuracy_point, accuracy_result
from tests.support.window import Window

Windows = Callable[[str | None], Window]

PAGES = ("/", "/jobs", "/jobs/new", "/results", "/compare", "/presets", "/presets/p05-three-numbers", "/docs")
PAYLOAD = '"><script>alert(1)</script>'


@pytest.mark.parametrize("path", [*PAGES, "/admin"])
def test_a_page_is_html_that_may_run_nothing_of_anybody_elses(window: Windows, path: str) -> None:
    answer = window("root").get(path)
    assert answer.status_code == 200
    policy = answer.headers["Content-Security-Policy"]
    assert "default-src 'none'; script-src 'self'; style-src 'self'" in policy
    assert "unsafe" not in policy
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert "style=" not in answer.text
    assert "<script>" not in answer.text
    assert "http://" not in answer.text.replace(str(answer.request.url.copy_with(raw_path=b"/"))[:-1], "").replace(
        "http://127.0.0.1", ""
    )


@pytest.mark.parametrize("path", PAGES)
def test_a_viewer_sees_all_pages_but_those_that_change_something(window: Windows, path: str) -> None:
    assert window("vera").get(path).status_code == (403 if path == "/jobs/new" else 200)


@pytest.mark.parametrize("user", ["ann", "vera"])
def test_only_admins_administer(window: Windows, user: str) -> None:
    browser = window(user)
    assert browser.get("/admin").status_code == 403
    for path in (
        "keys",
        "keys/1/remove",
        "users/ann",
        "users/ann/remove",
        "workers/gpu1:cpu/drain",
        "workers/gpu1:cpu/resume",
    ):
        assert browser.post(f"/admin/{path}", data={"user": "eve", "role": "admin"}).status_code == 403


def test_a_viewer_submits_and_cancels_nothing(window: Windows, api: Api) -> None:
    vera, job = window("vera"), api.submit()
    assert vera.post(f"/jobs/{job}/cancel").status_code == 403
    assert vera.post("/jobs/new", data={"kind": "cluster", "puzzle": "reduction"}).status_code == 403
    assert vera.post("/presets/p34-reduction/run").status_code == 403
    assert api.client().get(f"/v1/jobs/{job}").json()["status"] == "queued"


def test_a_user_cancels_own_jobs_only(window: Windows, api: Api) -> None:
    job = api.submit("bob")
    assert window("ann").post(f"/jobs/{job}/cancel").status_code == 403
    answer = window("bob").post(f"/jobs/{job}/cancel", data={"next": "/jobs?owner=bob"})
    assert (answer.status_code, answer.headers["Location"]) == (303, "/jobs?owner=bob")
    assert api.client().get(f"/v1/jobs/{job}").json()["status"] == "cancelled"


def test_a_study_is_told_in_tables_as_its_report_is(ann: Window, api: Api) -> None:
    spec = {"kind": "accuracy", "methods": ["sequential"], "distributions": ["pathological"], "sizes": [1000]}
    job = str(api.client().post("/v1/jobs", json=spec).json()["id"])
    points = [accuracy_point("sequential", 1000, 333.0)]
    api.finish(api.claim(job), accuracy_result(points).model_dump(mode="json"))
    assert "sum of pathological float32" in ann.get(f"/jobs/{job}/measured").text
    page = ann.get(f"/jobs/{job}").text
    assert "bound_formula" not in page.replace(" ", "_")
    assert f'href="/v1/reports/{job}"' in page


@pytest.mark.parametrize(("spread", "stressed"), [(0.5, False), (0.001, True)])
def test_a_ratio_is_stressed_only_where_it_shows_a_difference(
    ann: Window, api: Api, spread: float, stressed: bool
) -> None:
    ids = []
    spec = {"kind": "benchmark", "strategies": ["single_pass"], "sizes": [1000], "caches": ["cold"], "backend": "cuda"}
    for ms in (0.648, 1.0):
        ids.append(str(api.client().post("/v1/jobs", json=spec).json()["id"]))
        counts = {"cases": 1, "measured": 1, "skipped": 0, "failed": 0, "suspect": 0}
        result = {**counts, "ceiling_gbps": None, "peak_gbps": None, **RUN}
        api.finish(api.claim(ids[-1]), result, [replace(POINT, n=1000, bytes=4000, **timed(ms, spread))])
    page = ann.get("/compare", params={"job": ids}).text
    assert page.count("0.648×") == 2  # the mean and its only case
    assert page.count("<b>0.648×</b>") == (2 if stressed else 0)
    assert page.count("no difference shown") == (0 if stressed else 2)


def test_benchmarks_without_a_case_in_common_are_told_to_be_so(ann: Window, api: Api) -> None:
    ids = []
    for n in (1000, 2000):
        spec = {"kind": "benchmark", "strategies": ["single_pass"], "sizes": [n], "caches": ["cold"], "backend": "cuda"}
        ids.append(str(api.client().post("/v1/jobs", json=spec).json()["id"]))
        counts = {"cases": 1, "measured": 1, "skipped": 0, "failed": 0, "suspect": 0}
        result = {**counts, "ceiling_gbps": None, "peak_gbps": None, **RUN}
        api.finish(api.claim(ids[-1]), result, [replace(POINT, n=n, bytes=4 * n)])
    page = ann.get("/compare", params={"job": ids}).text
    assert "The two benchmarks have no case in common." in page
    assert "2 left out" in page


def test_a_page_within_a_section_shows_which(ann: Window, api: Api) -> None:
    page = ann.get(f"/jobs/{api.submit()}").text
    assert '<a href="/jobs" aria-current="true">' in page
    assert page.count("aria-current") == 1
    assert '<a href="/jobs">' in ann.get("/jobs/new").text


def test_a_job_that_failed_has_a_report_too(ann: Window, api: Api) -> None:
    job = api.submit()
    ann.post(f"/jobs/{job}/cancel")
    assert f'href="/v1/reports/{job}"' in ann.get(f"/jobs/{job}").text


def test_what_a_user_wrote_is_escaped_everywhere(ann: Window, api: Api) -> None:
    job = api.submit(tags={"note": PAYLOAD})
    api.finish(api.claim(job), {**RESULT, "strategy": PAYLOAD})
    for path in ("/", "/jobs", f"/jobs/{job}", f"/compare?job={job}", f"/jobs/new?from={job}", f"/jobs?tag={PAYLOAD}"):
        answer = ann.get(path)
        assert answer.status_code == 200
        assert "<script>alert" not in answer.text, path


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/jobs/00000000-0000-4000-8000-000000000000", 404),
        ("/jobs/nonsense", 422),
        ("/presets/nonsense", 404),
        ("/jobs?cursor=nonsense", 422),
        ("/compare?job=nonsense", 422),
        ("/results?n_min=many", 422),
        ("/results?cache=lukewarm", 422),
        ("/assets/0/nonsense.js", 404),
    ],
)
def test_an_error_is_a_page_that_says_what_is_wrong(ann: Window, path: str, status: int) -> None:
    answer = ann.get(path)
    assert answer.status_code == status
    if not path.startswith("/assets"):
        assert answer.headers["Content-Type"].startswith("text/html")
        assert "<h1>" in answer.text


def test_a_browser_that_goes_nowhere_gets_a_page_and_a_program_a_problem(ann: Window) -> None:
    accept = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"
    page = ann.get("/nowhere", headers={"Accept": accept})
    assert (page.status_code, page.headers["Content-Type"]) == (404, "text/html; charset=utf-8")
    assert "There is no page at /nowhere." in page.text
    assert ann.get("/nowhere").headers["Content-Type"] == "application/problem+json"


def test_an_error_of_a_part_is_a_part(ann: Window) -> None:
    answer = ann.get("/live/jobs/00000000-0000-4000-8000-000000000000", headers={"HX-Request": "true"})
    assert answer.status_code == 404
    assert answer.text.startswith('<p class="failure"')


def test_an_asset_is_kept_forever_under_an_address_that_names_its_content(ann: Window) -> None:
    page = ann.get("/").text
    address = page.partition('<link rel="stylesheet" href="')[2].partition('"')[0]
    answer = ann.get(address)
    assert answer.headers["Cache-Control"] == "public, max-age=31536000, immutable"
    assert answer.headers["Content-Encoding"] == "gzip"
    plain = ann.get(address, headers={"Accept-Encoding": "identity"})
    assert "Content-Encoding" not in plain.headers
    assert plain.text == answer.text
    assert ann.get(address.replace("/assets/", "/assets/0")).status_code == 404


def test_no_page_weighs_more_than_150_kb_and_none_with_charts_more_than_1_mb(ann: Window) -> None:
    def weight(address: str) -> int:
        with ann.stream("GET", address) as answer:
            assert answer.status_code == 200
            return len(b"".join(answer.iter_raw()))

    def weights(path: str) -> dict[str, int]:
        text = ann.get(path).text
        assets = {part.partition('"')[0] for part in text.split('="') if part.startswith("/assets/")}
        return {address: weight(address) for address in (path, *assets)}

    for path in PAGES:
        with_charts = weights(path)
        vega = sum(size for address, size in with_charts.items() if "vega" in address)
        assert sum(with_charts.values()) - vega <= 150_000, path
        assert sum(with_charts.values()) <= 1_000_000, path
    assert any("vega" in address for address in weights("/results"))


def test_exports_follow_the_filters_and_open_with_the_session(ann: Window, api: Api) -> None:
    text = ann.get("/results?op=max&n_min=1e3").text
    address = text.partition('href="/v1/results?')[2].partition('"')[0].replace("&amp;", "&")
    assert "op=max" in address
    assert "n_min=1000" in address
    answer = httpx.get(f"{api.url}/v1/results?{address}", cookies=dict(ann.cookies))
    assert answer.status_code == 200
    assert answer.headers["Content-Type"].startswith("text/csv")
