"""Results of very many values through the client: arrays of any size, files of every format, checked and resumed."""

import asyncio
import hashlib
import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pyarrow.parquet as pq
import pytest

from tests.support.service import Service
from warpfold.client import AsyncClient, Client, ReduceArrayResult, Refused, Unreachable, WarpfoldError
from warpfold.client.artefacts import Download, format_of
from warpfold.client.live_jobs import LiveJob

WIDE = np.array([[1e16], [1.0], [-1e16]]) * np.ones(12_000)


@pytest.fixture(scope="module")
def job(service: Service) -> Iterator[LiveJob]:
    with service.client() as client:
        yield client.submit_reduce(WIDE, axis=0).wait()


def test_an_array_of_any_size_comes_back(client: Client) -> None:
    down = client.reduce(WIDE, axis=0)
    assert (down.dtype.name, down.shape) == ("float64", (12_000,))
    assert (down == 1.0).all()
    flat = np.arange(24_001)
    sums = client.reduce(flat, segments=2)
    assert sums.dtype == np.int64
    assert (sums[:-1] == flat[:-1].reshape(-1, 2).sum(axis=1)).all()
    spread = client.reduce(flat.astype(np.float64), "var", segments=2, ddof=1)
    assert isinstance(spread, np.ma.MaskedArray)
    assert np.flatnonzero(np.ma.getmaskarray(spread)).tolist() == [12_000]
    assert (spread[:-1] == 0.5).all()


def test_asyncio_gives_the_same(service: Service, tmp_path: Path) -> None:
    async def use() -> tuple[Any, Path]:
        async with AsyncClient(service.url, service.token) as client:
            job = await client.submit_reduce(WIDE, axis=0)
            return await job.array(), await job.artefact(tmp_path / "out.csv")

    array, path = asyncio.run(use())
    assert (array == 1.0).all()
    assert path.read_text().splitlines()[1] == "0,1.0,0x1.0000000000000p+0,3"


def test_a_job_writes_its_stored_result_to_a_file(job: LiveJob, tmp_path: Path) -> None:
    assert isinstance(job.result, ReduceArrayResult)
    assert np.load(job.artefact(tmp_path / "out.npy")).sum() == 12_000
    assert pq.read_table(job.artefact(tmp_path / "out.parquet"))["value"].to_numpy().sum() == 12_000
    assert job.artefact(str(tmp_path / "noname"), "csv").read_text().startswith("axis_0,value,hex,count")
    assert sorted(path.name for path in tmp_path.iterdir() if path.is_file()) == ["noname", "out.npy", "out.parquet"]
    with pytest.raises(ValueError, match=r"must end in one of npy, arrow, parquet, csv"):
        job.artefact(tmp_path / "out.xlsx")
    with pytest.raises(ValueError, match="the values are stored"):
        job.result.to_numpy()
    assert (job.array() == 1.0).all()


def test_a_result_that_is_not_stored_says_so(client: Client, tmp_path: Path) -> None:
    small = client.submit_reduce([[1.0, 2.0]], axis=0)
    with pytest.raises(WarpfoldError, match="has stored no file"):
        small.artefact(tmp_path / "out.npy")
    assert small.array().tolist() == [1.0, 2.0]
    with pytest.raises(TypeError, match="no array of values"):
        client.array(client.submit_reduce([1.0]))
    assert not list(tmp_path.glob("*out*"))


def test_a_stored_result_is_deleted_to_free_the_quota(client: Client) -> None:
    job = client.submit_reduce(WIDE, axis=0).wait()
    client.delete_artefact(job.id)
    with pytest.raises(Refused, match="410"):
        job.array()


def test_what_broke_goes_on_where_it_stood(client: Client, job: LiveJob, monkeypatch: pytest.MonkeyPatch) -> None:
    cuts = [3, 50_000]
    asked: list[str | None] = []
    take, headers = Download.take, Download.headers

    def cut(self: Download, piece: bytes) -> None:
        if cuts and self.position + len(piece) > cuts[0]:
            take(self, piece[: cuts.pop(0) - self.position])
            raise httpx.ReadError("the connection broke")
        take(self, piece)

    def noted(self: Download) -> Any:
        asked.append(headers(self).get("Range"))
        return headers(self)

    monkeypatch.setattr(Download, "take", cut)
    monkeypatch.setattr(Download, "headers", noted)
    assert (client.array(job) == 1.0).all()
    assert asked == [None, "bytes=3-", "bytes=50000-"]


def test_bytes_that_changed_on_their_way_are_refused(client: Client, job: LiveJob, monkeypatch: Any) -> None:
    take = Download.take
    monkeypatch.setattr(Download, "take", lambda self, piece: take(self, bytes(piece[:-1]) + b"!"))
    with pytest.raises(Unreachable, match="not those of the stored result"):
        client.array(job)


def test_another_file_under_the_same_name_begins_anew() -> None:
    file = io.BytesIO()
    download = Download(file)
    download.begin(httpx.Response(200, headers={"ETag": '"a"'}))
    download.take(b"old")
    assert download.headers() == {"Range": "bytes=3-", "If-Range": '"a"'}
    download.begin(httpx.Response(200, headers={"ETag": 'W/"b"'}))
    download.take(b"new one")
    assert (file.getvalue(), download.headers()) == (b"new one", {})
    download.check(hashlib.sha256(b"new one").hexdigest())


def test_the_name_of_a_file_tells_its_format() -> None:
    assert [format_of(Path(name), None) for name in ("a.npy", "b.CSV", "c")] == ["npy", "csv", None]
    assert format_of(Path("d.bin"), "arrow") == "arrow"
