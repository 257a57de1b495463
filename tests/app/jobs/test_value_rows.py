"""The values of a reduction as CSV and in the dashboard's table."""

import csv
import io

import httpx
import pytest

from tests.support.api import RESULT, THREE_VALUES, Api
from warpfold.contract.kinds.groupby import GroupbyResult
from warpfold.contract.kinds.reduce import ReduceArrayResult

ARRAY = {
    **ReduceArrayResult.model_json_schema()["examples"][0],
    "shape": [2, 2],
    "values": [1.5, None, "inf", -0.0],
    "hex": ["0x1.8000000000000p+0", None, "inf", "-0x0.0p+0"],
    "counts": [1, 0, 3, 2],
}


@pytest.fixture
def job_id(http: httpx.Client, api: Api) -> str:
    job_id: str = http.post("/v1/jobs", json=THREE_VALUES).json()["id"]
    api.finish(api.claim(job_id), ARRAY)
    return job_id


def test_a_row_has_a_value_and_its_index(http: httpx.Client, job_id: str) -> None:
    answer = http.get(f"/v1/jobs/{job_id}/result", params={"format": "csv"})
    assert answer.headers["Content-Type"].startswith("text/csv")
    assert list(csv.reader(io.StringIO(answer.text))) == [
        ["axis_0", "axis_1", "value", "hex", "count"],
        ["0", "0", "1.5", "0x1.8000000000000p+0", "1"],
        ["0", "1", "", "", "0"],
        ["1", "0", "inf", "inf", "3"],
        ["1", "1", "-0.0", "-0x0.0p+0", "2"],
    ]
    assert http.get(f"/v1/jobs/{job_id}/result").json()["values"] == [1.5, None, "inf", -0.0]


def test_decimals_fractions_and_times_have_a_column_of_their_words(http: httpx.Client, api: Api) -> None:
    time = {"iso": "1970-01-01T00:00:07", "unit": "s", "timezone": None, "exact": None}
    for words, header, shown in (
        ({"decimal": ["0.10", None]}, "decimal", "0.10"),
        ({"fraction": ["1/10", None]}, "fraction", "1/10"),
        ({"time": [time, None]}, "time", "1970-01-01T00:00:07"),
    ):
        job_id = http.post("/v1/jobs", json=THREE_VALUES).json()["id"]
        values = {"shape": [2], "values": [0.1, None], "hex": ["0x1.999999999999ap-4", None], "counts": [1, 0]}
        api.finish(api.claim(job_id), ARRAY | values | words)
        rows = http.get(f"/v1/jobs/{job_id}/result", params={"format": "csv"}).text.splitlines()
        assert rows[0] == f"axis_0,value,hex,count,{header}"
        assert rows[1:] == [f"0,0.1,0x1.999999999999ap-4,1,{shown}", "1,,,0,"]


def test_one_value_is_one_row(http: httpx.Client, api: Api) -> None:
    job_id = http.post("/v1/jobs", json=THREE_VALUES).json()["id"]
    api.finish(api.claim(job_id), RESULT)
    text = http.get(f"/v1/jobs/{job_id}/result", params={"format": "csv"}).text
    assert text.splitlines() == ["value,hex,count", "1.0,0x1.0000000000000p+0,3"]
    assert http.get(f"/v1/jobs/{job_id}/result", params={"format": "xml"}).status_code == 422


def test_groups_have_columns_of_their_keys_and_values(http: httpx.Client, api: Api) -> None:
    job_id = http.post("/v1/jobs", json=THREE_VALUES).json()["id"]
    example = GroupbyResult.model_json_schema()["examples"][0]
    mean = {**example["columns"][0], "name": "mean", "values": [2.5, 3.0], "hex": None, "fractions": ["5/2", "3"]}
    api.finish(api.claim(job_id), example | {"columns": [*example["columns"], mean]})
    text = http.get(f"/v1/jobs/{job_id}/result", params={"format": "csv"}).text
    assert list(csv.reader(io.StringIO(text))) == [
        ["region", "rows", "total", "total_hex", "mean", "mean_fraction"],
        ["north", "2", "1.0000000000000002e+16", "0x1.1c37937e08001p+53", "2.5", "5/2"],
        ["south", "1", "2.5", "0x1.4000000000000p+1", "3.0", "3"],
    ]


def test_decimals_have_a_column_for_the_exact_value(http: httpx.Client, api: Api) -> None:
    job_id = http.post("/v1/jobs", json=THREE_VALUES).json()["id"]
    value = {"value": 0.3, "hex": "0x1.3333333333333p-2", "decimal": "0.30", "fraction": "3/10"}
    api.finish(api.claim(job_id), {**RESULT, **value})
    answer = http.get(f"/v1/jobs/{job_id}/result", params={"format": "csv"})
    assert list(csv.reader(io.StringIO(answer.text))) == [
        ["value", "hex", "count", "decimal", "fraction"],
        ["0.3", "0x1.3333333333333p-2", "3", "0.30", "3/10"],
    ]
