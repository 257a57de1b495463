"""Text, and what is no text, by every way into the service and on this machine."""

import gzip
import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.service import Service
from tests.support.shell import Shell
from warpfold.client.api import Client
from warpfold.kernels.errors import InvalidInput

CODES = "zip,country,x\n00501,NA,1\n501,DE,2\n00501,,\n"
ADDRESSES = "x,address\n" + '5,"Main Street 5\n7,Springfield"\n' * 80_000
"""More than one block of text, whose borders lie within quotes."""

SALES = "# of a till\r\nOrt;x\r\nKöln;1.234,5\r\nBonn;2\r\nKöln;0,25\r\n"
"""Sales as a till writes them: 1236.75 in all, and 1234.75 in Köln."""

TAKEN = {"delimiter": ";", "quote": '"', "decimal": ",", "thousands": ".", "comment": "#", "header": True}

LINES = b'{"k": "a", "x": 9007199254740993}\n{"k": "b", "x": 2}\n{"x": 1, "k": "a"}\n'
NOT_READ = {
    "array.csv.gz": (gzip.compress(b"[1, 2, 3]"), "is JSON"),
    "array.json": (b"[1, 2, 3]", "is JSON"),
    "rows.tsv": (b'[\n {"x": 1}\n]\n', "is JSON"),
    "map.geojson": (b'{"type": "FeatureCollection",\n "features": []}', "is JSON"),
    "classic.nc": (b"CDF\x01" + bytes(99), "is a NetCDF-3 file"),
    "offsets.nc": (b"CDF\x02" + bytes(99), "is a NetCDF-3 file"),
    "data.csv": (b"CDF\x05" + bytes(99), "is a NetCDF-3 file"),
}


@pytest.fixture(scope="module")
def root(service: Service) -> Path:
    [root] = service.settings.data_roots
    folder = root / "text"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    for name, (content, _) in NOT_READ.items():
        (folder / name).write_bytes(content)
    (folder / "codes.csv").write_text(CODES)
    (folder / "lines.jsonl").write_bytes(LINES)
    (folder / "lines.ndjson.gz").write_bytes(gzip.compress(LINES))
    for name, encoding in (("sales.csv", "utf-16"), ("latin.csv", "latin-1")):
        (folder / name).write_bytes(SALES.encode(encoding))
    (folder / "addresses.csv").write_text(ADDRESSES)
    (folder / "addresses.csv.gz").write_bytes(gzip.compress(ADDRESSES.encode(), 1))
    return folder


@pytest.fixture(scope="module")
def http(service: Service) -> Iterator[httpx.Client]:
    headers = {"Authorization": f"Bearer {service.token}"}
    with httpx.Client(base_url=service.url, headers=headers, timeout=60) as client:
        yield client


def job(http: httpx.Client, source: dict[str, Any], **spec: Any) -> dict[str, Any]:
    """The job, when it has ended."""
    asked = {"kind": "reduce", "backend": "cpu", **spec, "source": source}
    answer = http.post("/v1/jobs", json=asked, headers={"Prefer": "wait=30"})
    assert answer.status_code == 202, answer.text
    ended: dict[str, Any] = answer.json()
    return ended


@pytest.mark.parametrize("name", NOT_READ)
def test_json_and_netcdf3_are_refused_by_name_by_every_way(  # noqa: PLR0917 - the ways
    service: Service, http: httpx.Client, client: Client, root: Path, tmp_path: Path, name: str
) -> None:
    why, path = NOT_READ[name][1], f"text/{name}"
    sources: list[dict[str, Any]] = [
        {"type": "array", "path": path},
        {"type": "table", "path": path, "column": "x"},
        {"type": "files", "paths": [path], "column": "x"},
    ]
    if not name.endswith(".gz"):  # compressed, it is no .npy file
        sources += [{"type": "path", "path": path}]
    for source in sources[1:] if name.endswith(".gz") else sources:
        ended = job(http, source)
        assert (ended["status"], ended["reason"]) == ("failed", "invalid_input")
        assert f"{why}, which is not read: " in ended["error"], (source, ended["error"])
    grouped = {"by": ["k"], "aggregations": [{"column": "x", "op": "sum"}]}
    ended = job(http, {"type": "table", "path": path}, kind="groupby", **grouped)
    assert f"{why}, which is not read: " in ended["error"]
    seen = http.post("/v1/sources/inspect", json={"source": {"type": "table", "path": path}})
    assert f"{why}, which is not read: " in seen.text
    shell = Shell.at(service, tmp_path)
    here = ("reduce", str(root / name), "--local", *(("--column", "x") if ".gz" in name else ()))
    for words in (here, ("inspect", str(root / name))):
        shown = shell.run(*words)
        assert shown.code == 2
        assert f"{why}, which is not read: " in " ".join(shown.err.replace("│", "").split())
    if not name.endswith(".gz"):  # the job that reads a compressed file sees what it is
        with pytest.raises(InvalidInput, match=f"^{re.escape(str(root / name))} {why}, which is not read: "):
            client.reduce(root / name)
        assert why in http.post("/v1/datasets", params={"name": name}, content=(root / name).read_bytes()).text


@pytest.mark.parametrize("name", ["addresses.csv", "addresses.csv.gz"])
def test_line_ends_within_quotes_end_no_row_by_any_way(  # noqa: PLR0917 - the ways
    service: Service, http: httpx.Client, client: Client, root: Path, tmp_path: Path, name: str
) -> None:
    ended = job(http, {"type": "table", "path": f"text/{name}", "column": "x"})
    assert (ended["result"]["value"], ended["result"]["count"]) == (400_000, 80_000)
    assert client.reduce(root / name, column="x", backend="cpu").value == 400_000
    only = json.dumps({"op": "==", "column": "address", "value": "Main Street 5\n7,Springfield"})
    shell = Shell.at(service, tmp_path)
    assert shell.run("reduce", str(root / name), "--column", "x", "--local", "--filter", only).out == "400000\n"
    by = shell.run("reduce", str(root / name), "--by", "address", "--column", "x", "--local", "--json")
    assert json.loads(by.out)["columns"][0]["values"] == [400_000]


def test_keys_are_words_and_a_result_says_what_was_a_null(
    service: Service, http: httpx.Client, client: Client, root: Path, tmp_path: Path
) -> None:
    source = {"type": "table", "path": "text/codes.csv"}
    grouped: dict[str, Any] = {"kind": "groupby", "aggregations": [{"column": "x", "op": "sum"}]}
    for by, keys in (("zip", ["00501", "501"]), ("country", ["DE", "NA"])):
        result = job(http, source, **grouped, by=[by])["result"]
        assert result["keys"][0]["values"] == keys
        assert result["input"]["null_words"] == ["", "NA", "N/A", "n/a", "#N/A", "NULL", "null"]
    result = job(http, {**source, "null_words": ["NA"]}, **grouped, by=["country"])["result"]
    assert (result["keys"][0]["values"], result["dropped"]) == (["DE"], 2)
    assert result["input"]["null_words"] == ["", "NA"]
    is_na = {"op": "==", "column": "country", "value": "NA"}
    assert job(http, {**source, "column": "x", "filter": is_na})["result"]["value"] == 1
    reduced = client.reduce(root / "codes.csv", column="x", backend="cpu", null_words=["2"])
    assert (reduced.value, reduced.count, reduced.nulls) == (1, 1, 2)
    assert reduced.input is not None
    assert reduced.input.null_words == ("", "2")
    shell = Shell.at(service, tmp_path)
    words = ("reduce", str(root / "codes.csv"), "--column", "x", "--null-words", "2,NA")
    for where in (("--local",), ("--backend", "cpu")):
        shown = shell.run(*words, *where)
        assert shown.out == "1\n"
        assert "2 nulls left out (an empty cell, 2, NA)" in shown.err
    by_words = shell.run("reduce", str(root / "codes.csv"), "--by", "x", "--words", "x", "--column", "x", "--local")
    assert by_words.code == 2, "a column of words has no sum"


@pytest.mark.parametrize(("name", "encoding"), [("sales.csv", "utf-16-le"), ("latin.csv", "latin-1")])
def test_a_text_of_another_country_has_one_value_by_every_way_and_its_result_says_how_it_was_read(  # noqa: PLR0917
    service: Service, http: httpx.Client, client: Client, root: Path, tmp_path: Path, name: str, encoding: str
) -> None:
    needed: Any = {"encoding": encoding} if name == "latin.csv" else {}
    taken, path = {**TAKEN, "encoding": encoding}, f"text/{name}"
    sources: list[dict[str, Any]] = [{"type": "table", "path": path}, {"type": "files", "paths": [path, path]}]
    if needed:
        ended = job(http, {**sources[0], "column": "x"})
        assert ended["error"].endswith("`encoding` says what the text is in, such as latin-1 or cp1252")
    for source, times in zip(sources, (1, 2), strict=True):
        result = job(http, {**source, "column": "x", **needed})["result"]
        assert (result["value"], result["input"]["dialects"]) == (times * 1236.75, [taken])
    summed = {"by": ["Ort"], "aggregations": [{"column": "x", "op": "sum"}]}
    groups = job(http, {**sources[0], **needed}, kind="groupby", **summed)["result"]
    assert (groups["keys"][0]["values"], groups["columns"][0]["values"]) == (["Bonn", "Köln"], [2, 1234.75])
    assert groups["input"]["dialects"] == [taken]
    only = {"op": "==", "column": "Ort", "value": "Köln"}
    reduced = client.reduce(root / name, column="x", backend="cpu", filter=only, **needed)
    assert reduced.value == 1234.75
    assert reduced.input is not None
    assert [each.model_dump() for each in reduced.input.dialects] == [taken]
    assert client.groupby(root / name, "Ort", **needed).agg({"x": "sum"})["x_sum"].to_pylist() == [2, 1234.75]
    seen = http.post("/v1/sources/inspect", json={"source": {**sources[0], **needed}}).json()
    assert [(each["name"], each["reduced_as"]) for each in seen["contents"]] == [("Ort", None), ("x", "float64")]
    shell = Shell.at(service, tmp_path)
    options = ("--encoding", encoding, "--delimiter", ";") if needed else ()
    here = shell.run("reduce", str(root / name), "--column", "x", "--local", *options)
    assert here.out == "1236.75\n"
    assert "; read by delimiter ';', decimal ',', thousands '.'" in here.err
    by = shell.run("reduce", str(root / name), "--by", "Ort", "--column", "x", "--local", "--json", *options)
    assert json.loads(by.out)["input"]["dialects"] == [taken]
    assert "float64" not in shell.run("inspect", str(root / name), "--decimal", ".", "--thousands", "", *options).out
    assert "412.25" in shell.run("describe", str(root / name), "--local", *options).out


def test_what_two_readings_allow_is_refused_by_the_option_that_decides(
    service: Service, http: httpx.Client, root: Path, tmp_path: Path
) -> None:
    (root / "odd.csv").write_text("k;x\na;1,234\n")
    source, shell = {"type": "table", "path": "text/odd.csv", "column": "x"}, Shell.at(service, tmp_path)
    ended = job(http, source)
    assert ended["error"].endswith(
        "which is 1.234 or 1234, as are all words before: `decimal` says what stands before fractions"
    )
    for decimal, value in ((",", "1.234"), (".", "1234")):
        assert job(http, {**source, "decimal": decimal})["result"]["value"] == float(value)
        shown = shell.run("reduce", str(root / "odd.csv"), "--column", "x", "--local", "--decimal", decimal)
        assert shown.out == f"{value}\n"
    for options in (
        {"decimal": ",", "thousands": ","},
        {"delimiter": "a"},
        {"delimiter": "'", "quote": "'"},
        {"comment": "x"},
    ):
        answer = http.post("/v1/jobs", json={"kind": "reduce", "op": "sum", "source": {**source, **options}})
        assert answer.status_code == 422, options


@pytest.mark.parametrize("name", ["lines.jsonl", "lines.ndjson.gz"])
def test_json_lines_have_one_value_by_every_way(  # noqa: PLR0917 - the ways
    service: Service, http: httpx.Client, client: Client, root: Path, tmp_path: Path, name: str
) -> None:
    total, path = 9007199254740996, f"text/{name}"
    assert job(http, {"type": "table", "path": path, "column": "x"})["result"]["value"] == total
    assert job(http, {"type": "files", "paths": [path], "column": "x"})["result"]["value"] == total
    summed = {"by": ["k"], "aggregations": [{"column": "x", "op": "sum"}]}
    groups = job(http, {"type": "table", "path": path}, kind="groupby", **summed)["result"]
    assert (groups["keys"][0]["values"], groups["columns"][0]["values"]) == (["a", "b"], [total - 2, 2])
    seen = http.post("/v1/sources/inspect", json={"source": {"type": "table", "path": path}}).json()
    assert [(each["name"], each["reduced_as"]) for each in seen["contents"]] == [("k", None), ("x", "int64")]
    assert client.reduce(root / name, column="x", backend="cpu").value == total
    shell = Shell.at(service, tmp_path)
    only = json.dumps({"op": "==", "column": "k", "value": "b"})
    assert shell.run("reduce", str(root / name), "--column", "x", "--local", "--filter", only).out == "2\n"
    assert shell.run("reduce", str(root / name), "--by", "k", "--column", "x", "--local").out.startswith(
        "k\tx_sum\na\t9"
    )
