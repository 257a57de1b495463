from typing import Any

import httpx
import pytest

from tests.support.api import Api
from tests.support.measurements import POINT, replace, timed


def compared(http: httpx.Client, baseline: str, candidate: str, **query: Any) -> dict[str, Any]:
    answer = http.get("/v1/results/compare", params={"baseline": baseline, "candidate": candidate, **query})
    assert answer.status_code == 200, answer.text
    body: dict[str, Any] = answer.json()
    return body


def test_two_jobs_are_compared_case_by_case(api: Api, http: httpx.Client) -> None:
    small, large = replace(POINT, n=1000, **timed(0.006)), replace(POINT, **timed(0.232))
    before = api.store(small, large)
    after = api.store(replace(small, **timed(0.003)), replace(large, **timed(0.232)))
    comparison = compared(http, before, after)
    assert [item["case"]["n"] for item in comparison["items"]] == [1000, 1 << 28]
    faster, same = (item["speedup"] for item in comparison["items"])
    assert faster["value"] == pytest.approx(2.0, rel=1e-12)
    assert faster["low"] == pytest.approx(2 * 0.999 / 1.001, rel=1e-12)
    assert faster["high"] == pytest.approx(2 * 1.001 / 0.999, rel=1e-12)
    assert (faster["differs"], same["differs"]) == (True, False)
    assert comparison["speedup"] == pytest.approx(2**0.5, rel=1e-12)
    assert comparison["speedup_differs"]
    assert comparison["left_out"] == []


@pytest.mark.parametrize(
    ("factors", "spread", "differs"),
    [
        ((0.5, 0.8), 0.4, False),  # twice the speed, and no interval leaves out 1
        ((0.5, 0.8), 0.001, True),
        ((0.5, 1.0), 0.001, True),
        ((0.5, 1.1), 0.001, False),  # one is faster and one slower: the mean of both tells nothing
        ((1.0, 1.0), 0.001, False),
    ],
)
def test_a_mean_differs_where_a_case_does_and_none_the_other_way(
    api: Api, http: httpx.Client, factors: tuple[float, float], spread: float, differs: bool
) -> None:
    points = [replace(POINT, n=n, **timed(1.0, spread)) for n in (1, 2)]
    after = [replace(point, **timed(factor, spread)) for point, factor in zip(points, factors, strict=True)]
    comparison = compared(http, api.store(*points), api.store(*after))
    assert comparison["speedup_differs"] is differs


def test_two_strategies_of_one_job_are_compared(api: Api, http: httpx.Client) -> None:
    job = api.store(replace(POINT, strategy="cub", **timed(0.25)), replace(POINT, **timed(0.2)))
    comparison = compared(http, f"{job}:cub", f"{job}:single_pass")
    (item,) = comparison["items"]
    assert (item["baseline"]["strategy"], item["candidate"]["strategy"]) == ("cub", "single_pass")
    assert item["speedup"]["value"] == pytest.approx(1.25, rel=1e-12)


@pytest.mark.parametrize("change", [{"device": "NVIDIA A100"}, {"device_uuid": "GPU-2"}, {"driver": "590.1"}])
def test_other_devices_and_drivers_are_compared_only_if_asked(
    api: Api, http: httpx.Client, change: dict[str, Any]
) -> None:
    here, elsewhere = api.store(POINT), api.store(replace(POINT, **change))
    answer = http.get("/v1/results/compare", params={"baseline": here, "candidate": elsewhere})
    assert answer.status_code == 422
    (error,) = answer.json()["errors"]
    assert error["field"] == "across"
    assert "NVIDIA H200" in error["message"]
    assert len(compared(http, here, elsewhere, across=True)["items"]) == 1


def test_what_cannot_be_compared_is_left_out_with_the_reason(api: Api, http: httpx.Client) -> None:
    cases = [replace(POINT, n=n) for n in (1, 2, 3, 4)]
    before = api.store(*cases)
    after = api.store(
        replace(cases[0], flags=("suspect",)),
        replace(cases[1], outcome="failed", reason="wrong value", kernel_ms=None),
        replace(cases[2], low_ms=None, high_ms=None),
        replace(POINT, n=5),
    )
    comparison = compared(http, before, after)
    (item,) = comparison["items"]
    assert item["case"]["n"] == 3
    assert (item["speedup"]["low"], item["speedup"]["differs"]) == (None, False)
    assert {point["case"]["n"]: point["why"] for point in comparison["left_out"]} == {
        1: "the time of single_pass is suspect: faster than physics allows",
        2: "single_pass was failed: wrong value",
        4: "the candidate has no such case",
        5: "the baseline has no such case",
    }


def test_nothing_to_compare_has_no_speedup(api: Api, http: httpx.Client) -> None:
    comparison = compared(http, api.store(replace(POINT, n=1)), api.store(replace(POINT, n=2)))
    assert (comparison["items"], comparison["speedup"], comparison["speedup_differs"]) == ([], None, False)


def test_a_job_without_points_is_404(api: Api, http: httpx.Client) -> None:
    job = api.store(POINT)
    for other in ("00000000-0000-4000-8000-000000000000", f"{job}:torch", api.store()):
        answer = http.get("/v1/results/compare", params={"baseline": job, "candidate": other})
        assert answer.status_code == 404
        assert answer.json()["detail"].startswith(f"candidate: {other} has no points of a benchmark")


@pytest.mark.parametrize("side", ["", "x", "00000000-0000-4000-8000-000000000000:", "cub"])
def test_a_side_that_is_no_job_is_422(refusing: httpx.Client, side: str) -> None:
    answer = refusing.get("/v1/results/compare", params={"baseline": side, "candidate": side})
    assert answer.status_code == 422
    assert {error["field"] for error in answer.json()["errors"]} == {"baseline", "candidate"}


def regressions(http: httpx.Client, query: str = "") -> list[dict[str, Any]]:
    answer = http.get(f"/v1/results/regressions?{query}")
    assert answer.status_code == 200, answer.text
    items: list[dict[str, Any]] = answer.json()["items"]
    return items


def history(api: Api, *times: float, **change: Any) -> None:
    for ms in times:
        api.store(replace(POINT, **{**timed(ms), **change}))


def test_a_case_that_got_slower_is_a_regression(api: Api, http: httpx.Client) -> None:
    history(api, 0.231, 0.232, 0.233, 0.264)
    (regression,) = regressions(http)
    assert regression["slowdown"]["value"] == pytest.approx(0.264 / 0.232, rel=1e-12)
    assert regression["earlier"] == 3
    assert regression["baseline"]["kernel_ms"] == 0.232
    assert regression["latest"]["kernel_ms"] == 0.264


def test_the_worst_comes_first(api: Api, http: httpx.Client) -> None:
    history(api, 0.2, 0.3)
    history(api, 0.2, 0.5, n=1000)
    assert [regression["case"]["n"] for regression in regressions(http)] == [1000, 1 << 28]
    assert [regression["case"]["n"] for regression in regressions(http, "worst=2")] == [1000]


def test_one_outlier_among_the_earlier_ones_hides_nothing(api: Api, http: httpx.Client) -> None:
    history(api, 0.232, 9.0, 0.232, 0.300)
    assert len(regressions(http)) == 1


@pytest.mark.parametrize(
    ("times", "change"),
    [
        ((0.232,), {}),  # nothing came before
        ((0.232, 0.240), {}),  # less than 5 % slower
        ((0.264, 0.232), {}),  # faster
        ((0.2, 0.3), {"low_ms": 0.1, "high_ms": 0.5}),  # within what its spread explains
        ((0.2, 0.3), {"low_ms": None, "high_ms": None}),  # too few samples to say
        ((0.2, 0.3), {"kind": "reduce"}),  # one run is no benchmark
    ],
)
def test_no_regression(api: Api, http: httpx.Client, times: tuple[float, ...], change: dict[str, Any]) -> None:
    history(api, *times, **change)
    assert regressions(http) == []


@pytest.mark.parametrize(
    "change", [{"driver": "590.1"}, {"device_uuid": "GPU-2"}, {"cache": "hot"}, {"distribution": "uniform"}]
)
def test_other_places_and_cases_have_other_histories(api: Api, http: httpx.Client, change: dict[str, str]) -> None:
    history(api, 0.2)
    history(api, 0.3, **change)
    assert regressions(http) == []


def test_suspect_skipped_and_failed_points_are_no_history(api: Api, http: httpx.Client) -> None:
    history(api, 0.2)
    history(api, 0.3, flags=("suspect",))
    history(api, 0.3, outcome="failed", reason="crashed")
    assert regressions(http) == []
    history(api, 0.3)
    (regression,) = regressions(http)
    assert regression["earlier"] == 1


def test_only_the_latest_ten_before_count(api: Api, http: httpx.Client) -> None:
    history(api, *[0.1] * 3, *[0.2] * 10, 0.2)
    assert regressions(http) == []


def test_filters_narrow_the_search(api: Api, http: httpx.Client) -> None:
    history(api, 0.2, 0.3)
    assert len(regressions(http, "op=sum&dtype=float32&strategy=single_pass&driver=580.159.04&host=gpu1")) == 1
    assert regressions(http, "op=mean") == []
    assert regressions(http, "device=Tesla%20T4") == []
