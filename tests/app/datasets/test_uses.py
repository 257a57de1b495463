"""Which jobs and batches read an uploaded array, and which of them a user sees."""

import hashlib
import io

import httpx
import numpy as np
import pytest

from tests.support.api import Api

_BUFFER = io.BytesIO()
np.save(_BUFFER, np.arange(12, dtype=np.float32))
FILE = _BUFFER.getvalue()
ID = hashlib.sha256(FILE).hexdigest()
SUM = {"kind": "reduce", "op": "sum", "source": {"type": "dataset", "id": ID}}


@pytest.fixture
def http(api: Api) -> httpx.Client:
    client = api.client()
    assert client.post("/v1/datasets", content=FILE, params={"name": "a.npy"}).is_success
    return client


def read_by(http: httpx.Client) -> dict[str, list[str]]:
    answer = http.get(f"/v1/datasets/{ID}/uses")
    assert answer.status_code == 200, answer.text
    read: dict[str, list[str]] = answer.json()
    return read


def test_jobs_and_batches_that_name_it_are_listed_newest_first(http: httpx.Client) -> None:
    before = read_by(http)
    one_of_many = {"type": "files", "uploads": [{"id": ID}]}
    beside = {"type": "values", "values": [1.0] * 12, "dtype": "float32"}
    specs = [SUM, {**SUM, "source": one_of_many}, {**SUM, "op": "dot", "source": beside, "other": SUM["source"]}]
    made = [http.post("/v1/jobs", json=spec).json()["id"] for spec in specs]
    batch = http.post("/v1/batches", json={"specs": [SUM, SUM]}).json()["id"]
    after = read_by(http)
    assert after["jobs"] == [*reversed(made), *before["jobs"]]
    assert after["batches"] == [batch, *before["batches"]]


def test_a_job_that_reads_an_upload_reads_the_array_that_it_becomes(http: httpx.Client) -> None:
    headers = {"Upload-Length": str(len(FILE)), "Upload-Complete": "?0", "Upload-Draft-Interop-Version": "8"}
    begun = http.post("/v1/uploads", headers=headers)
    path = begun.headers["Location"]
    source = {"type": "upload", "id": path.rpartition("/")[2]}
    job = http.post("/v1/jobs", json={**SUM, "source": source}).json()["id"]
    assert job not in read_by(http)["jobs"]
    headers = {"Upload-Offset": "0", "Upload-Complete": "?1", "Content-Type": "application/partial-upload"}
    http.patch(path, content=FILE, headers=headers).raise_for_status()
    assert read_by(http)["jobs"][0] == job


def test_others_see_their_own_jobs_alone(api: Api, http: httpx.Client) -> None:
    http.put(f"/v1/datasets/{ID}/sharing", json={"everyone": True}).raise_for_status()
    http.put(f"/v1/jobs/{http.post('/v1/jobs', json=SUM).json()['id']}/sharing", json={}).raise_for_status()
    bob = api.client("bob")
    own = bob.post("/v1/jobs", json=SUM).json()["id"]
    bob.put(f"/v1/jobs/{own}/sharing", json={}).raise_for_status()
    assert read_by(bob)["jobs"][:1] == [own]
    assert own not in read_by(http)["jobs"]


def test_an_owner_renames_it_and_nobody_else(api: Api, http: httpx.Client) -> None:
    path = f"/v1/datasets/{ID}"
    assert http.patch(path, json={"name": "march.npy"}).json()["name"] == "march.npy"
    assert http.get(path).json()["name"] == "march.npy"
    http.put(f"{path}/sharing", json={"everyone": True}).raise_for_status()
    refused = api.client("bob").patch(path, json={"name": "mine"})
    assert (refused.status_code, "only its owner and admins may rename it" in refused.text) == (403, True)
    assert http.patch(path, json={"name": "x" * 129}).json()["errors"][0]["field"] == "name"
