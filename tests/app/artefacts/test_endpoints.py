"""HTTP of stored results: formats, ranges, tags, and what is said where there is nothing to download."""

import base64
import csv
import hashlib
import io
import sys
from collections.abc import Callable
from typing import Any
from uuid import UUID, uuid4

import httpx
import ml_dtypes
import numpy as np
import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet as pq
import pytest

from tests.support.api import Api
from tests.support.artefacts import store_of
from warpfold.app.artefacts.store import ArtefactName

StoreResult = Callable[..., UUID]
VALUES = np.array([[1.5, -0.0, np.inf], [np.nan, 1e-320, 2.0]])


@pytest.fixture
def url(store_result: StoreResult) -> str:
    return f"/v1/jobs/{store_result(VALUES)}/artefact"


def test_the_stored_file_is_sent_as_it_is(http: httpx.Client, url: str) -> None:
    answer = http.get(url)
    assert answer.status_code == 200
    assert np.load(io.BytesIO(answer.content)).tobytes() == VALUES.tobytes()
    digest = hashlib.sha256(answer.content)
    assert answer.headers["Content-Length"] == str(len(answer.content))
    assert answer.headers["ETag"] == f'"{digest.hexdigest()}"'
    assert answer.headers["Repr-Digest"] == f"sha-256=:{base64.b64encode(digest.digest()).decode()}:"
    assert answer.headers["Content-Disposition"].endswith('.npy"')
    assert http.get(url, params={"format": "npy"}).content == answer.content
    head = http.head(url)
    assert (head.headers["Content-Length"], head.content) == (str(len(answer.content)), b"")


def test_a_tag_that_the_client_holds_spares_the_sending(http: httpx.Client, url: str) -> None:
    for format in ("npy", "csv", "parquet"):
        tag = http.get(url, params={"format": format}).headers["ETag"]
        again = http.get(url, params={"format": format}, headers={"If-None-Match": tag})
        assert (again.status_code, again.content) == (304, b"")
        assert http.get(url, params={"format": format}, headers={"If-None-Match": '"other"'}).status_code == 200


@pytest.mark.parametrize(
    ("asked", "status", "cut"),
    [
        ("bytes=3-9", 206, slice(3, 10)),
        ("bytes=100-", 206, slice(100, None)),
        ("bytes=-7", 206, slice(-7, None)),
        ("bytes=0-99999", 206, slice(0, None)),
        ("bytes=0-1,5-6", 200, slice(0, None)),
        ("lines=1-2", 200, slice(0, None)),
        ("bytes=9-3", 200, slice(0, None)),
        ("bytes=-", 200, slice(0, None)),
        ("bytes=99999-", 416, None),
    ],
)
def test_a_range_is_a_part_of_the_stored_file(
    http: httpx.Client, url: str, asked: str, status: int, cut: slice | None
) -> None:
    whole = http.get(url).content
    answer = http.get(url, headers={"Range": asked})
    assert answer.status_code == status
    if cut is None:
        assert answer.headers["Content-Range"] == f"bytes */{len(whole)}"
        assert answer.headers["Content-Type"] == "application/problem+json"
        return
    assert answer.content == whole[cut]
    if status == 206:
        start = cut.indices(len(whole))[0]
        assert answer.headers["Content-Range"] == f"bytes {start}-{start + len(answer.content) - 1}/{len(whole)}"


def test_a_range_of_another_file_is_not_taken(http: httpx.Client, url: str) -> None:
    whole = http.get(url)
    same = http.get(url, headers={"Range": "bytes=1-2", "If-Range": whole.headers["ETag"]})
    other = http.get(url, headers={"Range": "bytes=1-2", "If-Range": '"other"'})
    assert (same.status_code, other.status_code) == (206, 200)


def test_other_formats_have_a_row_for_each_value(http: httpx.Client, url: str) -> None:
    rows = list(csv.reader(io.StringIO(http.get(url, params={"format": "csv"}).text)))
    assert rows[:4] == [
        ["axis_0", "axis_1", "value", "hex", "count"],
        ["0", "0", "1.5", "0x1.8000000000000p+0", "2"],
        ["0", "1", "-0.0", "-0x0.0p+0", "2"],
        ["0", "2", "inf", "inf", "2"],
    ]
    arrow = pa.ipc.open_file(http.get(url, params={"format": "arrow"}).content).read_all()
    parquet = pq.read_table(io.BytesIO(http.get(url, params={"format": "parquet"}).content))
    for table in (arrow, parquet):
        assert table.column_names == ["axis_0", "axis_1", "value", "count"]
        assert table["value"].to_numpy().tobytes() == VALUES.tobytes()
        assert table["axis_1"].to_pylist() == [0, 1, 2, 0, 1, 2]
        assert table["count"].to_pylist() == [2] * 6
        assert table.schema.metadata[b"shape"] == b"[2, 3]"


@pytest.mark.parametrize(
    ("values", "dtype", "wanted"),
    [
        ([3, None, 2**70], "integer", [3, None, 2**70]),
        ([True, False, None], "bool", [True, False, None]),
        ([1.5, None, -2.0], "bfloat16", [1.5, None, -2.0]),
        ([1.5, None, -2.0], "float16", [1.5, None, -2.0]),
        ([255, None, 0], "uint8", [255, None, 0]),
    ],
)
def test_every_dtype_and_missing_values_survive(
    http: httpx.Client, store_result: StoreResult, values: list[Any], dtype: str, wanted: list[Any]
) -> None:
    url = f"/v1/jobs/{store_result(np.array(values, object), dtype, [1, 0, 2])}/artefact"
    for format in ("arrow", "parquet"):
        content = http.get(url, params={"format": format}).content
        table = pa.ipc.open_file(content).read_all() if format == "arrow" else pq.read_table(io.BytesIO(content))
        downloaded = table["value"].to_pylist()
        assert [int(value) if isinstance(value, str) else value for value in downloaded] == wanted
        assert table["count"].to_pylist() == [1, 0, 2]
    rows = list(csv.DictReader(io.StringIO(http.get(url, params={"format": "csv"}).text)))
    assert [row["value"] for row in rows] == ["" if value is None else str(value) for value in wanted]
    missing = np.load(io.BytesIO(http.get(url, params={"part": "missing"}).content))
    assert missing.tolist() == [value is None for value in wanted]
    assert np.load(io.BytesIO(http.get(url, params={"part": "counts"}).content)).tolist() == [1, 0, 2]
    stored = np.load(io.BytesIO(http.get(url).content))
    if dtype == "bfloat16":
        assert stored.dtype == ml_dtypes.bfloat16


def test_a_table_comes_as_arrow_parquet_and_csv(http: httpx.Client, store_result: StoreResult) -> None:
    table = pa.table({"region": ["EU", None], "sum": [1.5, 2.0], "state": [b"\0\1", None]})
    url = f"/v1/jobs/{store_result(table)}/artefact"
    assert pa.ipc.open_file(http.get(url).content).read_all().equals(table)
    assert pq.read_table(io.BytesIO(http.get(url, params={"format": "parquet"}).content)).equals(table)
    text = http.get(url, params={"format": "csv"}).text
    assert text.splitlines() == ["region,sum,state", "EU,1.5,AAE=", ",2.0,"]
    refused = http.get(url, params={"format": "npy"})
    assert refused.status_code == 422
    assert refused.json()["errors"] == [{"field": "format", "message": "should be one of arrow, parquet, csv"}]


def test_what_is_no_part_or_format_is_refused_with_its_field(http: httpx.Client, url: str) -> None:
    for query, field in (
        ({"format": "xml"}, "format"),
        ({"part": "missing"}, "part"),
        ({"part": "values", "format": "csv"}, "format"),
        ({"fromat": "csv"}, "fromat"),
    ):
        refused = http.get(url, params=query)
        assert refused.status_code == 422
        assert [error["field"] for error in refused.json()["errors"]] == [field]


def test_where_there_is_nothing_the_answer_says_why(http: httpx.Client, api: Api, url: str) -> None:
    assert http.get(f"/v1/jobs/{uuid4()}/artefact").status_code == 404
    plain = api.submit()
    waiting = http.get(f"/v1/jobs/{plain}/artefact")
    assert (waiting.status_code, waiting.json()["job_status"]) == (409, "queued")
    api.finish(api.claim(plain))
    nothing = http.get(f"/v1/jobs/{plain}/artefact")
    assert nothing.status_code == 404
    assert f"/v1/jobs/{plain}/result" in nothing.json()["detail"]
    text = http.get(url.replace("artefact", "result"), params={"format": "csv"})
    assert text.status_code == 422
    assert f"{url}?format=csv" in text.json()["detail"]


def test_the_owner_deletes_it_and_the_job_stays(http: httpx.Client, api: Api, url: str) -> None:
    job_id = UUID(url.split("/")[3])
    assert api.client("bob").delete(url).status_code == 403
    assert http.delete(url).status_code == 204
    assert not store_of(api).path(ArtefactName(job_id, 1)).exists()
    for method in ("GET", "DELETE"):
        gone = http.request(method, url)
        assert (gone.status_code, gone.json()["type"]) == (410, "urn:warpfold:gone")
    assert http.get(url.replace("/artefact", "")).json()["result"]["artefact"]["rows"] == 6


def test_an_admin_may_delete_it_too(api: Api, url: str) -> None:
    assert api.client("root").delete(url).status_code == 204


def test_a_download_outlives_its_deletion(http: httpx.Client, api: Api, url: str) -> None:
    whole = http.get(url).content
    with http.stream("GET", url) as answer:
        assert http.delete(url).status_code == 204
        assert answer.read() == whole


def test_files_that_are_not_there_are_the_services_fault(http: httpx.Client, api: Api, url: str) -> None:
    store_of(api).remove(ArtefactName(UUID(url.split("/")[3]), 1))
    for format in ("npy", "csv", "parquet"):
        assert http.get(url, params={"format": format}).status_code == 503


@pytest.fixture
def without_pyarrow(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("pyarrow", "pyarrow.parquet"):
        monkeypatch.setitem(sys.modules, name, None)


def test_without_pyarrow_npy_and_csv_are_served(http: httpx.Client, url: str, without_pyarrow: None) -> None:
    for format in ("arrow", "parquet"):
        refused = http.get(url, params={"format": format})
        assert (refused.status_code, refused.json()["type"]) == (503, "urn:warpfold:unavailable")
        assert "pyarrow is not installed" in refused.json()["detail"]
    assert http.get(url).status_code == 200
    assert http.get(url, params={"format": "csv"}).status_code == 200
