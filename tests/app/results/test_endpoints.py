import csv
import io

import httpx
import pytest

from tests.support.api import Api
from tests.support.measurements import replace
from warpfold.contract.measurement import Measurement
from warpfold.kernels.studies.shapes import SHAPE_FIELDS, CaseShape

POINT = Measurement(
    kind="reduce",
    op="sum",
    dtype="float32",
    strategy="exact",
    backend="cuda",
    device="NVIDIA H200",
    n=1_000_000,
    bytes=4_000_000,
    samples=1,
    load_ms=1.5,
    kernel_ms=0.008,
    correctly_rounded=True,
)


def test_nothing_measured_is_an_empty_page(refusing: httpx.Client) -> None:
    assert refusing.get("/v1/results").json() == {"items": [], "next_cursor": None}


def test_a_point_is_shown_with_its_job_and_its_speed(api: Api, http: httpx.Client) -> None:
    job_id = api.store(POINT)
    [item] = http.get("/v1/results").json()["items"]
    assert (item["job_id"], item["device"], item["n"]) == (job_id, "NVIDIA H200", 1_000_000)
    assert item["gb_per_s"] == pytest.approx(500.0)


def test_points_by_shape_are_listed_by_their_shape_and_exported_with_it(api: Api, http: httpx.Client) -> None:
    shapes = [
        CaseShape.matrix(40, 25, 1), CaseShape.matrix(40, 25, 0), CaseShape.cut(1000, 8),
        CaseShape.table(1000, 10, "sorted"), CaseShape.table(1000, 10, "random"),
    ]  # fmt: skip
    job_id = api.store(*(replace(POINT, kind="benchmark", **shape.in_columns()) for shape in shapes), POINT)
    for query, wanted in [
        ("rows=40&columns=25", [1, 0]), ("axis=0", [1]), ("segments=8", [2]), ("groups=10", [4, 3]),
        ("key_order=sorted", [3]), ("rows=1000", [4, 3]), ("columns=24", []),
    ]:  # fmt: skip
        items = http.get(f"/v1/results?job_id={job_id}&{query}").json()["items"]
        assert [{name: item[name] for name in SHAPE_FIELDS} for item in items] == [
            dict(shapes[number].in_columns()) for number in wanted
        ], query
    assert http.get("/v1/results?axis=2").status_code == 422
    assert http.get("/v1/results?key_order=shuffled").status_code == 422
    rows = list(csv.DictReader(io.StringIO(http.get(f"/v1/results?format=csv&job_id={job_id}").text)))
    assert [row["columns"] for row in rows] == ["", "", "", "", "25", "25"]
    assert [row["key_order"] for row in rows] == ["", "random", "sorted", "", "", ""]


def test_no_time_is_no_speed(api: Api, http: httpx.Client) -> None:
    api.store(replace(POINT, kernel_ms=0.0))
    assert http.get("/v1/results").json()["items"][0]["gb_per_s"] is None


@pytest.mark.parametrize(
    ("query", "wanted"),
    [
        ("op=sum", [3, 2, 1, 0]),
        ("op=mean", []),
        ("dtype=float64", [1]),
        ("strategy=numpy&backend=cpu", [2]),
        ("device=NVIDIA%20H200&n_min=2000000", [3]),
        ("n_max=1000000&dtype=float32", [2, 0]),
        ("n_min=1000000&n_max=1000000&strategy=exact&dtype=float32", [0]),
        ("kind=reduce&n_min=3000000", [3]),
        ("kind=benchmark", []),
        ("job_id={job}", [3, 2, 1, 0]),
        ("job_id=00000000-0000-4000-8000-000000000000", []),
        ("format=json&limit=1", [3]),
    ],
)
def test_filters(api: Api, http: httpx.Client, query: str, wanted: list[int]) -> None:
    points = [
        POINT,
        replace(POINT, dtype="float64"),
        replace(POINT, strategy="numpy", backend="cpu", device="Xeon"),
        replace(POINT, n=3_000_000),
    ]
    job_id = api.store(*points)
    everything = [item["id"] for item in http.get("/v1/results").json()["items"]][::-1]
    items = http.get(f"/v1/results?{query.format(job=job_id)}").json()["items"]
    assert [everything.index(item["id"]) for item in items] == wanted


def test_pages_meet_without_gap_or_overlap(api: Api, http: httpx.Client) -> None:
    api.store(*(replace(POINT, n=n) for n in range(7)))
    seen: list[int] = []
    query = "limit=3"
    while True:
        page = http.get(f"/v1/results?{query}").json()
        seen += [item["n"] for item in page["items"]]
        if page["next_cursor"] is None:
            break
        query = f"limit=3&cursor={page['next_cursor']}"
    assert seen == [6, 5, 4, 3, 2, 1, 0]


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("kind=nonsense", "kind"),
        ("n_min=-1", "n_min"),
        ("n_max=many", "n_max"),
        (f"n_max={2**63}", "n_max"),
        ("format=xml", "format"),
        ("cursor=zz", "cursor"),
        ("device=%00", "device"),
        ("job_id=1", "job_id"),
        ("limit=0", "limit"),
    ],
)
def test_a_bad_filter_is_422_and_named(refusing: httpx.Client, query: str, field: str) -> None:
    response = refusing.get(f"/v1/results?{query}")
    assert response.status_code == 422
    assert [error["field"] for error in response.json()["errors"]] == [field]
