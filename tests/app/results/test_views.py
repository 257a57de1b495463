import csv
import io

import httpx
import pytest

from tests.support.api import Api
from tests.support.measurements import POINT, replace

SKIPPED = replace(
    POINT,
    strategy="torch",
    outcome="skipped",
    reason='PyTorch is not installed, as "pip" says',
    kernel_ms=None,
    flags=(),
    throttle=(),
)


def test_csv_has_a_line_a_point_and_reads_back_to_the_bit(api: Api, http: httpx.Client) -> None:
    job_id = api.store(POINT, SKIPPED)
    answer = http.get("/v1/results?format=csv")
    assert answer.headers["content-type"].startswith("text/csv")
    skipped, measured = csv.DictReader(io.StringIO(answer.text))
    assert measured["job_id"] == job_id
    for name, value in dict(POINT).items():
        if isinstance(value, float):
            assert float(measured[name]) == value
        elif isinstance(value, list):
            assert measured[name] == " ".join(value)
        else:
            assert measured[name] == ("" if value is None else str(value))
    assert float(measured["gb_per_s"]) == pytest.approx(4628.2, rel=1e-4)
    assert float(measured["percent_of_ceiling"]) == pytest.approx(99.53, rel=1e-4)
    assert (skipped["outcome"], skipped["reason"], skipped["kernel_ms"]) == ("skipped", SKIPPED.reason, "")


def test_csv_of_nothing_is_its_line_of_names(refusing: httpx.Client) -> None:
    (names,) = csv.reader(io.StringIO(refusing.get("/v1/results?format=csv").text))
    assert names[:3] == ["id", "job_id", "created_at"]


def test_parquet_keeps_types_and_bits(api: Api, http: httpx.Client) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    job_id = api.store(POINT, SKIPPED)
    answer = http.get("/v1/results?format=parquet")
    assert answer.headers["content-type"] == "application/vnd.apache.parquet"
    table = parquet.read_table(io.BytesIO(answer.content))
    assert table.schema.field("n").type == pyarrow.int64()
    assert table.schema.field("kernel_ms").type == pyarrow.float64()
    assert table.schema.field("created_at").type == pyarrow.timestamp("us", tz="UTC")
    assert table.schema.field("flags").type == pyarrow.list_(pyarrow.string())
    skipped, measured = table.to_pylist()
    assert measured["job_id"] == job_id
    for name, value in dict(POINT).items():
        assert measured[name] == (list(value) if isinstance(value, list) else value)
    assert skipped["kernel_ms"] is None


def test_parquet_of_nothing_still_has_its_columns(refusing: httpx.Client) -> None:
    pytest.importorskip("pyarrow")
    from pyarrow import parquet

    table = parquet.read_table(io.BytesIO(refusing.get("/v1/results?format=parquet").content))
    assert table.num_rows == 0
    assert "percent_of_ceiling" in table.column_names


def test_a_server_without_pyarrow_says_so(refusing: httpx.Client, monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "pyarrow", None)
    answer = refusing.get("/v1/results?format=parquet")
    assert answer.status_code == 503
    assert "pyarrow is not installed" in answer.json()["detail"]


@pytest.mark.parametrize("format", ["csv", "json"])
def test_the_next_page_is_linked_with_all_filters(api: Api, http: httpx.Client, format: str) -> None:
    api.store(*(replace(POINT, n=n) for n in range(1, 6)))
    address = f"/v1/results?format={format}&limit=2&op=sum"
    seen: list[int] = []
    while address:
        answer = http.get(address)
        if format == "csv":
            seen += [int(row["n"]) for row in csv.DictReader(io.StringIO(answer.text))]
        else:
            seen += [item["n"] for item in answer.json()["items"]]
        address = answer.links.get("next", {}).get("url", "")
    assert seen == [5, 4, 3, 2, 1]


@pytest.mark.parametrize(
    ("query", "wanted"),
    [
        ("outcome=skipped", ["torch"]),
        ("outcome=measured", ["single_pass"]),
        ("flag=throttled", ["single_pass"]),
        ("flag=suspect", []),
        ("cache=cold&driver=580.159.04&host=gpu1", ["torch", "single_pass"]),
        ("cache=hot", []),
        ("driver=1", []),
    ],
)
def test_benchmark_filters(api: Api, http: httpx.Client, query: str, wanted: list[str]) -> None:
    api.store(POINT, SKIPPED)
    items = http.get(f"/v1/results?{query}").json()["items"]
    assert [item["strategy"] for item in items] == wanted
