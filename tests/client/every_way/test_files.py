"""Jobs over files, through the whole service: handed in by HTTP, client and command line, run by a real worker."""

import gzip
import json
import os
import shutil
import zipfile
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import h5py
import httpx
import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest
import zarr

from tests.support.service import Service
from tests.support.shell import Shell
from tests.support.workbooks import write_workbook
from warpfold.client.api import Client
from warpfold.kernels.errors import InvalidInput

PRICES = [2**53 + 1, None, 3, 5, None, -(2**53)]
REGIONS = ["EU", "EU", "US", None, "EU", "US"]
TABLE = pa.table({"region": REGIONS, "price": pa.array(PRICES, pa.int64())})
TEXT = "region,price\nEU,9007199254740993\nEU,\nUS,3\nNA,5\nEU,NA\nUS,-9007199254740992\n"
IN_EU = {"op": "==", "column": "region", "value": "EU"}
SALT = np.array([[1e16, 1.0, -1e16], [3.0, np.nan, 0.5]])

CUBE = np.arange(24.0).reshape(2, 3, 4)


@pytest.fixture(scope="module")
def root(service: Service) -> Path:
    """The data root of the service, with a file of each format."""
    [root] = service.settings.data_roots
    folder = root / "sources"
    shutil.rmtree(folder, ignore_errors=True)  # a process may come back to this module, and make its files again
    folder.mkdir()
    pq.write_table(TABLE, folder / "sales.parquet", row_group_size=2)
    pyarrow.feather.write_feather(TABLE, folder / "sales.arrow")
    (folder / "sales.csv").write_text(TEXT)
    (folder / "sales.csv.gz").write_bytes(gzip.compress(TEXT.encode()))
    np.savez_compressed(folder / "ocean.npz", salt=SALT, temp=np.ones(3))
    with h5py.File(folder / "ocean.h5", "w") as file:
        file.create_dataset("run/salt", data=SALT, chunks=(1, 2), compression="gzip")
    zarr.create_array(folder / "ocean.zarr", data=SALT, chunks=(1, 2))
    with h5py.File(folder / "cube.nc", "w") as file:
        cube = file.create_dataset("temp", data=CUBE)
        for at, (name, length) in enumerate(zip(("time", "lat", "lon"), CUBE.shape, strict=True)):
            file.create_dataset(name, data=np.arange(length)).make_scale(name)
            cube.dims[at].attach_scale(file[name])
    zarr.create_array(folder / "cube.zarr", data=CUBE, chunks=(1, 3, 4), dimension_names=("time", "lat", "lon"))
    np.save(folder / "a.npy", np.arange(4.0))
    np.save(folder / "b.npy", np.full(3, 0.25))
    (folder / "c.npy").symlink_to("/etc/hostname")
    os.mkfifo(folder / "pipe")
    return folder


@pytest.fixture(scope="module")
def http(service: Service) -> Iterator[httpx.Client]:
    headers = {"Authorization": f"Bearer {service.token}"}
    with httpx.Client(base_url=service.url, headers=headers, timeout=60) as client:
        yield client


def ended(http: httpx.Client, source: dict[str, Any], **options: Any) -> dict[str, Any]:
    """The job that reduces `source`, when it has ended."""
    spec = {"kind": "reduce", "backend": "cpu", "source": source, **options}
    answer = http.post("/v1/jobs", json=spec, headers={"Prefer": "wait=30"})
    assert answer.status_code == 202, answer.text
    job: dict[str, Any] = answer.json()
    return job


def result(http: httpx.Client, source: dict[str, Any], **options: Any) -> dict[str, Any]:
    job = ended(http, source, **options)
    assert job["status"] == "succeeded", job
    return {name: job["result"][name] for name in ("value", "count", "nulls")}


def test_timestamps_of_96_bits_are_the_same_whichever_way_they_are_read(
    http: httpx.Client, client: Client, root: Path
) -> None:
    path, last = root / "far.parquet", "9999-12-31T00:00:00.000000"
    far = pa.table({"k": [1, 1, 2], "at": pa.array([datetime(1000, 1, 1), datetime(9999, 12, 31), None])})
    pq.write_table(far, path, use_deprecated_int96_timestamps=True)
    filters: list[dict[str, Any]] = [{}, {"filter": {"op": ">", "column": "at", "value": "2100-01-01"}}]
    for source in ({"type": "table", "path": "sources/far.parquet"}, {"type": "files", "glob": "sources/far*"}):
        for options in filters:
            job = ended(http, {**source, "column": "at", **options}, op="max")
            assert job["result"]["time"]["iso"] == last, job
    for of_file in filters:
        reduced = client.reduce(path, "max", column="at", **of_file)  # which uploads the file
        assert reduced.time is not None
        assert reduced.time.iso == last
    grouped = client.groupby(path, "k").agg(at=("at", "max"))
    assert grouped["at"].to_pylist() == [datetime(9999, 12, 31), None]


@pytest.mark.parametrize("name", ["sales.parquet", "sales.arrow", "sales.csv", "sales.csv.gz"])
def test_a_column_is_reduced_without_its_nulls_and_with_the_rows_of_a_filter(
    http: httpx.Client, root: Path, name: str
) -> None:
    table = {"type": "table", "path": f"sources/{name}", "column": "price"}
    assert result(http, table) == {"value": 9, "count": 4, "nulls": 2}
    assert result(http, {**table, "filter": IN_EU}) == {"value": 2**53 + 1, "count": 1, "nulls": 2}
    refused = ended(http, {**table, "null_policy": "raise"})
    assert (refused["status"], refused["reason"]) == ("failed", "invalid_input")
    assert "holds a null in 'price', at index 1" in refused["error"]


@pytest.mark.parametrize(
    ("name", "array"), [("ocean.npz", "salt"), ("ocean.h5", "run/salt"), ("ocean.zarr", None)], ids=lambda value: value
)
def test_an_array_is_reduced_whole_or_in_part(http: httpx.Client, root: Path, name: str, array: str | None) -> None:
    source = {"type": "array", "path": f"sources/{name}", **({"array": array} if array else {})}
    first = {**source, "select": [0]}
    assert result(http, first) == {"value": 1.0, "count": 3, "nulls": 0}
    omitted = result(http, source, nan_policy="omit")
    assert omitted == {"value": 4.5, "count": 5, "nulls": 0}, "a NaN is no null"


def test_many_files_are_reduced_as_one_array(http: httpx.Client, root: Path) -> None:
    assert result(http, {"type": "files", "glob": "sources/?.npy"})["value"] == 6.75, "what a link leads out to is none"
    listed = {"type": "files", "paths": ["sources/b.npy", "sources/a.npy"]}
    assert result(http, listed, op="argmax") == {"value": 6, "count": 7, "nulls": 0}
    tables = {"type": "files", "glob": "sources/sales.*", "column": "price", "filter": IN_EU}
    assert result(http, tables) == {"value": 4 * (2**53 + 1), "count": 4, "nulls": 8}


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ({"type": "table", "path": "sources/sales.parquet", "column": "prize"}, "no column 'prize'; did you mean"),
        ({"type": "array", "path": "sources/ocean.npz", "array": "sal"}, "holds no array 'sal'; did you mean 'salt'"),
        ({"type": "table", "path": "sources/cut.parquet"}, "is not a whole Parquet file"),
        ({"type": "array", "path": "sources/cut.npy"}, "is truncated: its header promises"),
        ({"type": "array", "path": "sources/cut.h5"}, "is not a whole HDF5 file"),
        ({"type": "table", "path": "sources/pipe"}, "is not a regular file"),
        ({"type": "path", "path": "sources/pipe"}, "is not a regular file"),
        ({"type": "array", "path": "sources/c.npy"}, "lies outside of this server's data roots"),
        ({"type": "files", "glob": "sources/?.py"}, "matches no file below this server's data roots"),
        ({"type": "files", "paths": ["sources/a.npy", "sources/ocean.npz"]}, "holds 2 arrays, so that array must name"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_is_wrong_with_a_file_fails_its_job_with_a_sentence_that_names_it(
    http: httpx.Client, root: Path, source: dict[str, Any], message: str
) -> None:
    for name in ("sales.parquet", "a.npy", "ocean.h5"):
        whole = (root / name).read_bytes()
        (root / f"cut.{name.rpartition('.')[2]}").write_bytes(whole[:-5])
    job = ended(http, source)
    assert (job["status"], job["reason"], job["attempt"]) == ("failed", "invalid_input", 1)
    assert message in job["error"], job["error"]


def test_a_source_that_no_server_offers_is_refused_at_once_with_its_field(http: httpx.Client, root: Path) -> None:
    for source, field in [
        ({"type": "table", "path": "../x"}, "source.path"),
        ({"type": "files", "glob": "/etc/*"}, "source.glob"),
        ({"type": "table", "path": "x", "filter": {"op": "==", "column": "a"}}, "source.filter.value"),
        (
            {"type": "table", "path": "x", "filter": {"op": "and", "of": [{"op": "not", "of": {"op": "in"}}]}},
            "source.filter.of.0.of.column",
        ),
        ({"type": "array", "path": "x", "select": ["all"]}, "source.select.0"),
        ({"type": "dataset", "id": "0" * 64, "column": "a", "array": "b"}, "source.column"),
    ]:
        answer = http.post("/v1/jobs", json={"kind": "reduce", "source": source})
        assert answer.status_code == 422, source
        assert answer.json()["errors"][0]["field"] == field


def _zip(folder: Path, file: Path) -> Path:
    with zipfile.ZipFile(file, "w") as archive:
        for path in sorted(folder.rglob("*")):
            archive.write(path, f"{folder.name}/{path.relative_to(folder)}")
    return file


UPLOADS: dict[str, dict[str, Any]] = {
    "sales.parquet": {"column": "price", "filter": IN_EU},
    "sales.csv": {"column": "price", "filter": IN_EU},
    "sales.csv.gz": {"column": "price", "filter": IN_EU},
    "ocean.h5": {"select": [0]},
    "ocean.npz": {"array": "salt", "select": [0]},
    "ocean.zarr.zip": {"select": [0]},
}


@pytest.mark.parametrize("name", UPLOADS)
def test_a_client_uploads_a_file_of_any_format_and_reduces_it(
    client: Client, root: Path, tmp_path: Path, name: str
) -> None:
    path = root / name
    if name == "ocean.zarr.zip":
        path = _zip(root / "ocean.zarr", tmp_path / name)
    reduced = client.reduce(path, "sum", backend="cpu", **UPLOADS[name])
    assert reduced.value == (2**53 + 1 if "sales" in name else 1.0)
    assert reduced.nulls == (2 if "sales" in name else 0)


def test_text_is_taken_by_its_name_or_its_media_type_and_by_nothing_else(http: httpx.Client) -> None:
    table = b"a\tb\n1\t2\n3\t4\n"
    assert "a `name` that ends in .csv or .tsv" in http.post("/v1/datasets", content=table).json()["detail"]
    named = http.post("/v1/datasets", params={"name": "x.tsv"}, content=table)
    assert (named.status_code, named.json()["format"], named.json()["dtype"]) == (201, "text", "")
    typed = http.post("/v1/datasets", content=table, headers={"Content-Type": "text/csv; charset=utf-8"})
    assert typed.status_code == 200
    source = {"type": "dataset", "id": named.json()["id"], "text": "tsv", "column": "b"}
    assert result(http, source) == {"value": 6, "count": 2, "nulls": 0}
    begun = http.post("/v1/uploads", params={"name": "y.csv"}, headers={"Upload-Length": "10", "Upload-Complete": "?0"})
    headers = {"Upload-Offset": "0", "Upload-Complete": "?1", "Content-Type": "application/partial-upload"}
    kept = http.patch(begun.headers["Location"], content=b"x,y\n1,2\n3,", headers=headers)
    assert (kept.status_code, kept.json()["format"]) == (201, "text")


def test_the_command_line_reduces_a_table_and_the_folder_of_a_hierarchy(
    service: Service, root: Path, tmp_path: Path
) -> None:
    shell = Shell.at(service, tmp_path)
    table = shell.run("reduce", str(root / "sales.csv"), "--column", "price", "--backend", "cpu")
    assert (table.code, table.out) == (0, "9\n"), table.err
    assert "2 nulls left out" in table.err
    array = shell.run("reduce", str(root / "ocean.zarr"), "--select", "[0]", "--backend", "cpu")
    assert (array.code, array.out) == (0, "1.0\n"), array.err
    near = shell.run("reduce", str(root / "sales.parquet"), "--column", "prices", "--backend", "cpu")
    assert near.code == 2
    assert "did you mean 'price'?" in near.err


@pytest.mark.parametrize("name", ["cube.nc", "cube.zarr"])
@pytest.mark.parametrize(("axis", "numbers"), [("time", 0), (["lon", "time"], (2, 0)), (["lat", -1], (1, 2))])
def test_an_axis_is_called_by_the_name_of_its_dimension_by_every_way(  # noqa: PLR0917
    service: Service, http: httpx.Client, client: Client, root: Path, tmp_path: Path, name: str, axis: Any, numbers: Any
) -> None:
    array: Any = {"array": "temp"} if name.endswith(".nc") else {}
    values = CUBE.sum(axis=numbers)
    job = ended(http, {"type": "array", "path": f"sources/{name}", **array}, axis=axis)
    assert np.array_equal(job["result"]["values"], values.ravel())
    assert job["spec"]["axis"] == axis
    if name.endswith(".nc"):
        assert np.array_equal(client.reduce(root / name, axis=axis, **array), values)
    words = ",".join(map(str, [axis] if isinstance(axis, str) else axis))
    options = ("--array", "temp") if array else ()
    asked = ("reduce", str(root / name), *options, f"--axis={words}", "--local", "--json")
    shown = Shell.at(service, tmp_path).run(*asked)
    assert json.loads(shown.out)["values"] == values.ravel().tolist()


def test_a_name_that_no_dimension_has_is_refused_with_those_that_are_there(
    service: Service, http: httpx.Client, client: Client, root: Path, tmp_path: Path
) -> None:
    names = "the array has no axis 'tme'; its axes have the names 'time', 'lat', 'lon'"
    job = ended(http, {"type": "array", "path": "sources/cube.nc", "array": "temp"}, axis="tme")
    assert (job["status"], names in job["error"]) == ("failed", True)
    with pytest.raises(InvalidInput, match=names):
        client.reduce(root / "cube.nc", axis="tme", array="temp")
    job = ended(http, {"type": "array", "path": "sources/a.npy"}, axis="time")
    assert "is of a format without names of dimensions: name the number of an axis" in job["error"]
    spec = {"kind": "reduce", "op": "sum", "axis": "time", "source": {"type": "values", "values": [1.0, 2.0]}}
    refused = http.post("/v1/jobs", json=spec)
    assert (refused.status_code, "have no names of dimensions" in refused.text) == (422, True)
    shell = Shell.at(service, tmp_path)
    shown = shell.run("reduce", str(root / "cube.nc"), "--array", "temp", "--axis", "tme", "--local")
    assert (shown.code, "'time', 'lat', 'lon'" in " ".join(shown.err.split())) == (2, True)


def test_a_sheet_of_excel_is_reduced_by_every_way(
    http: httpx.Client, client: Client, service: Service, root: Path
) -> None:
    rows: list[list[Any]] = [["region", "price"], ["EU", 0.1], ["US", 2**53], ["EU", None], [None, "NA"]]
    path = write_workbook(root / "sales.xlsx", {"Notes": [["x"], [7]], "June": rows})
    table = {"type": "table", "path": "sources/sales.xlsx", "column": "price", "sheet": "June"}
    assert result(http, table) == {"value": 2.0**53, "count": 2, "nulls": 2}
    assert result(http, {**table, "filter": IN_EU}) == {"value": 0.1, "count": 1, "nulls": 1}
    reduced = client.reduce(path, column="price", sheet=2)  # which uploads the file
    assert (reduced.value, reduced.count) == (2.0**53, 2)
    assert reduced.input is not None
    assert reduced.input.dialects[0].sheet == "June"
    grouped = client.groupby(path, "region", sheet="June").agg({"price": ["sum", "count"]})
    assert grouped.to_pylist()[0] == {"region": "EU", "price_sum": 0.1, "price_count": 1}
    shown = client.inspect({"type": "table", "path": "sources/sales.xlsx", "sheet": "June"})
    assert (shown.sheets, shown.rows, shown.format) == (("Notes", "June"), 4, ".xlsx")
    shell = Shell(root, {"WARPFOLD_URL": service.url, "WARPFOLD_TOKEN": service.token})
    for where in ((), ("--local",)):
        done = shell.run("reduce", "sales.xlsx", "--column", "price", "--sheet", "June", *where)
        assert (done.out.strip(), "nulls" in done.err) == (str(2.0**53), True), done
    listed = shell.run("inspect", "sales.xlsx")
    assert "one of 2 sheets, which --sheet names: Notes, June" in listed.err
    with pytest.raises(InvalidInput, match=r"sales.xlsx holds no column 'prize'; did you mean 'price'"):
        client.reduce(path, column="prize", sheet="June")
