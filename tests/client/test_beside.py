"""A large array is reduced while it is sent, by one job that ends with the upload. A fault costs time alone."""

import asyncio
import hashlib
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tests.support.cutting import cutting
from tests.support.service import Service
from tests.support.waiting import until
from warpfold.client import beside, uploads
from warpfold.client.api import Client
from warpfold.client.async_api import AsyncClient
from warpfold.client.errors import WarpfoldError
from warpfold.client.exchange import Call, Interrupted
from warpfold.client.job_results import ReduceResult
from warpfold.client.uploads import EarlyJob

MIB = 1 << 20


@pytest.fixture(autouse=True)
def early(monkeypatch: pytest.MonkeyPatch) -> None:
    """Arrays of some mebibytes are large, and their jobs begin at once."""
    monkeypatch.setattr(uploads, "_EARLY", 4 * MIB)
    monkeypatch.setattr(beside, "_START_S", 1e9)
    monkeypatch.setattr(beside, "_BURST", MIB)


def array(seed: int, count: int = 3 * MIB) -> np.ndarray[Any, Any]:
    return np.random.default_rng(seed).normal(size=count)


def npy(path: Path, data: np.ndarray[Any, Any]) -> Path:
    np.save(path, data)
    return path


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def test_a_large_file_is_reduced_by_a_job_that_follows_its_upload(client: Client, tmp_path: Path) -> None:
    data = array(1)
    path = npy(tmp_path / "a.npy", data)
    job = client.submit_reduce(path, "sum")
    result = job.get()
    assert isinstance(result, ReduceResult)
    assert job.spec["source"]["type"] == "upload"
    again = client.reduce(path, "sum")
    assert (result.hex, result.count, result.state) == (again.hex, data.size, again.state)
    assert result.input is not None
    assert result.input.fingerprint == digest(path) == result.input.files[0]["name"]
    assert client.submit_reduce(path, "max").spec["source"]["id"] == digest(path)
    client.delete_dataset(digest(path))


@pytest.mark.parametrize("op", ["mean", "std", "argmax", "norm2", "min"])
def test_every_op_has_the_value_of_the_dataset(client: Client, op: str) -> None:
    data = array(2).astype(np.float32).reshape(-1, 3)
    first = client.reduce(data, op)
    assert client.reduce(data, op).hex == first.hex
    by_numpy = {"norm2": np.linalg.norm}.get(op) or getattr(np, op)
    assert first.value == pytest.approx(float(by_numpy(data.astype(np.float64))), rel=1e-5)


@pytest.mark.parametrize(
    "data", [np.asfortranarray(array(3).reshape(-1, 4)), array(4) > 0, array(5).astype(">f8")], ids=["F", "bool", "big"]
)
def test_what_must_be_there_whole_waits_for_the_whole(client: Client, tmp_path: Path, data: Any) -> None:
    path = npy(tmp_path / "a.npy", np.concatenate([data, data, data]) if data.dtype == bool else data)
    result = client.reduce(path, "argmax")
    assert result.value == int(np.load(path).argmax())
    client.delete_dataset(digest(path))


def test_an_upload_that_is_cut_goes_on_and_its_job_with_it(service: Service, tmp_path: Path) -> None:
    path = npy(tmp_path / "a.npy", array(6))
    with cutting(service, 9 * MIB) as url, Client(url, service.token) as client:
        result = client.reduce(path, "sum")
        assert result.hex == client.reduce(path, "sum").hex
        client.delete_dataset(digest(path))


def test_the_asynchronous_client_does_the_same(service: Service, tmp_path: Path) -> None:
    path = npy(tmp_path / "a.npy", array(7))

    async def reduce() -> tuple[Any, ...]:
        async with AsyncClient(service.url, service.token) as client:
            job = await client.submit_reduce(path, "sum")
            result: Any = await job.get()
            again = await client.reduce(path, "sum")
            await client.delete_dataset(digest(path))
            return job.spec["source"]["type"], result.hex, again.hex

    kind, early, late = asyncio.run(reduce())
    assert (kind, early) == ("upload", late)


class Refusing:
    """A service that accepts the job and does not take the upload: it refuses that, or the connection breaks."""

    def __init__(self, error: WarpfoldError) -> None:
        self.error = error
        self.asked: list[str] = []

    def send(self, call: Call[Any]) -> Any:
        self.asked.append(call.path)
        if call.path == "/upload":
            self.beside.due()
            until(lambda: self.beside.outcome is not None)
            raise self.error
        return SimpleNamespace(id="17")

    async def send_async(self, call: Call[Any]) -> Any:
        if call.path == "/upload":
            self.beside.due()
            while self.beside.outcome is None:
                await asyncio.sleep(0.001)
        return self.send(call)

    def upload(self, *, asynchronous: bool) -> None:
        call, self.beside = Call("PATCH", "/upload", lambda answer: answer), EarlyJob({}).beside("ab" * 16)
        if asynchronous:
            asyncio.run(beside.send_both_async(self.send_async, call, self.beside))
        else:
            beside.send_both(self.send, call, self.beside)


@pytest.mark.parametrize("asynchronous", [False, True])
@pytest.mark.parametrize(
    ("error", "after"), [(WarpfoldError("no room"), ["/v1/jobs/17/cancel"]), (Interrupted("cut"), [])]
)
def test_a_job_whose_upload_is_refused_is_cancelled_and_one_whose_line_breaks_is_not(
    error: WarpfoldError, after: list[str], asynchronous: bool
) -> None:
    service = Refusing(error)
    with pytest.raises(WarpfoldError, match=str(error)):
        service.upload(asynchronous=asynchronous)
    assert sorted(service.asked[:2]) == ["/upload", "/v1/jobs"]
    assert service.asked[2:] == after
    assert service.beside.outcome.id == "17"


def test_a_strategy_that_may_add_in_another_order_waits_for_the_dataset(client: Client, tmp_path: Path) -> None:
    path = npy(tmp_path / "a.npy", array(8))
    job = client.submit_reduce(path, "sum", strategy="numpy")
    assert job.spec["source"]["type"] == "dataset"
    client.delete_dataset(digest(path))


class Slow:
    """A content whose first 8 MiB go into buffers at once, and the rest at 10 MiB a second of a clock."""

    length = 100 * MIB

    def __init__(self) -> None:
        self.sent = 0

    def monotonic(self) -> float:
        return max(0, self.sent - 8 * MIB) / (10 * MIB)

    def pieces(self, start: int = 0) -> Iterator[bytes]:
        while self.sent < self.length:
            yield bytes(MIB)
            self.sent += MIB


def test_a_slow_line_holds_a_slot_at_its_end_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    content, call = Slow(), beside.Beside(Call("GET", "/", lambda answer: answer))
    monkeypatch.setattr(beside, "_BURST", 16 * MIB)
    monkeypatch.setattr(beside, "_START_S", 0.5)
    monkeypatch.setattr(beside, "time", content)
    begun = [content.sent for _ in beside.Timed(content, call, content.length).pieces() if call.decided]
    assert call.wanted
    assert begun[0] >= 93 * MIB
