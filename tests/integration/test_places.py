"""Objects of stores and web servers, from the command line to the result, and what becomes of secrets."""

import io
import json
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import httpx
import numpy as np
import psycopg
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from psycopg import sql

from tests.support.places.s3 import ACCESS, REGION, SECRET, S3Server, s3_server
from tests.support.places.web import WebServer, hang, status, web_server
from tests.support.servers import fresh_database
from tests.support.service import Service, running_service
from tests.support.shell import Shell
from tests.support.waiting import until
from warpfold.app.config import Settings
from warpfold.client.errors import JobFailed, Refused
from warpfold.worker.embedded import EmbeddedPostgres, EmbeddedRedis

pytest.importorskip("obstore")
pytest.importorskip("moto")
NUMBERS = np.random.default_rng(3).normal(size=50_000) * 1e100
EXACT = float(sum(map(Fraction, NUMBERS.tolist())))
TOKEN = "a-token-that-nobody-may-see"


@dataclass
class World:
    service: Service
    s3: S3Server
    web: WebServer
    log: Path


@pytest.fixture(scope="module")
def world(
    shared_postgres: EmbeddedPostgres, shared_redis: EmbeddedRedis, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[World]:
    root = tmp_path_factory.mktemp("service")
    with s3_server() as s3, web_server() as web, fresh_database(shared_postgres) as url:
        places = root / "places.json"
        bucket = {"url": "s3://bucket", "endpoint": s3.endpoint, "region": REGION, "private": True}
        bucket |= {"access_key_id": ACCESS, "secret_access_key": SECRET}
        broken = {**bucket, "url": "s3://broken", "endpoint": web.root}
        site = {"url": web.root, "private": True, "bearer_token": TOKEN}
        places.write_text(json.dumps({"place": [bucket, broken, site]}))
        table = io.BytesIO()
        pq.write_table(pa.table({"price": NUMBERS, "kind": np.arange(NUMBERS.size) % 3}), table, row_group_size=5000)
        s3.put("bucket", "sales.parquet", table.getvalue())
        for number, part in enumerate(np.split(NUMBERS, 2)):
            array = io.BytesIO()
            np.save(array, part)
            s3.put("bucket", f"runs/{number}.npy", array.getvalue())
            web.files[f"{number}.npy"] = array.getvalue()
        settings = Settings(database_url=url, redis_url=shared_redis.url, data_dir=root / "warpfold", places=places)
        with running_service(settings, root / "log") as service:
            yield World(service, s3, web, root / "log")


@pytest.fixture
def shell(world: World, tmp_path: Path) -> Shell:
    return Shell.at(world.service, tmp_path)


def test_a_column_in_a_bucket_is_reduced_from_the_command_line(world: World, shell: Shell) -> None:
    done = shell.run("reduce", "s3://bucket/sales.parquet", "--column", "price", "--json")
    job = json.loads(done.out)
    assert job["result"]["value"] == EXACT
    (read,) = job["result"]["input"]["objects"]
    assert read["url"] == "s3://bucket/sales.parquet"
    assert (read["etag"], read["size"]) == world.s3.facts("bucket", "sales.parquet")
    assert 0 < read["bytes_read"] <= read["size"]
    assert job["result"]["input"]["bytes_read"] == read["bytes_read"]


def test_a_pattern_is_one_array_with_the_same_bits(world: World, shell: Shell) -> None:
    assert shell.run("reduce", "s3://bucket/runs/*.npy").out == f"{EXACT!r}\n"
    with world.service.client() as client:
        assert client.reduce("s3://bucket/runs/*.npy").value == EXACT
        assert client.reduce(world.web.url("1.npy"), "max").value == NUMBERS[25_000:].max()
        dot = client.reduce("s3://bucket/runs/0.npy", "dot", other=world.web.url("0.npy"))
    assert dot.value == float(sum(Fraction(number) ** 2 for number in NUMBERS[:25_000].tolist()))


def test_a_url_is_looked_into_before(shell: Shell) -> None:
    looked = json.loads(shell.run("inspect", "s3://bucket/sales.parquet", "--json").out)
    assert [column["name"] for column in looked["contents"]] == ["price", "kind"]
    assert looked["rows"] == NUMBERS.size
    done = shell.run("inspect", "s3://bucket/runs/*.npy")
    assert "25,000" in done.out
    assert "the first of 2 files" in done.err


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("s3://other/x.npy", "is outside of the places that this server may read"),
        ("https://ada:hush@example.org/x.npy", "credentials"),
        ("s3://bucket/x.npy?X-Amz-Signature=hush", "credentials"),
    ],
)
def test_a_url_that_may_not_be_read_is_refused_when_it_is_submitted(world: World, url: str, why: str) -> None:
    with world.service.client() as client, pytest.raises(Refused, match=why) as caught:
        client.submit_reduce(url)
    assert "source.paths.0" in str(caught.value) or "source.glob" in str(caught.value)
    assert "hush" not in str(caught.value)


def test_what_fails_says_why_and_no_secret_is_anywhere(world: World) -> None:
    body = b"<Error><Code>%s</Code><Message>" + SECRET.encode() + b"</Message></Error>"
    failing = {
        "s3://bucket/none.npy": ("invalid_input", "is not there"),
        "s3://broken/a.npy": ("invalid_input", "may not be read"),
        "s3://broken/b.npy": ("unavailable", "have expired"),
        world.web.url("none.npy"): ("invalid_input", "is not there"),
    }
    world.web.always["broken/a.npy"] = status(403, body % b"AccessDenied")
    world.web.always["broken/b.npy"] = status(400, body % b"ExpiredToken")
    with world.service.client() as client:
        for url, (reason, why) in failing.items():
            with pytest.raises(JobFailed, match=why) as caught:
                client.reduce(url)
            assert caught.value.reason == reason
            assert repr(url) in str(caught.value)
        assert world.web.asked[-1][1]["authorization"] == f"Bearer {TOKEN}"
        seen = [
            httpx.get(f"{world.service.url}{path}", headers=client_headers(world), timeout=60).text for path in _PAGES
        ]
        for job in client.jobs():
            path = f"{world.service.url}/v1/jobs/{job.id}"
            seen.append(httpx.get(path, headers=client_headers(world), timeout=60).text)
            seen.append(httpx.get(f"{path}/result", headers=client_headers(world), timeout=60).text)
    logs = [path.read_text(errors="replace") for path in world.log.parent.rglob("*log*") if path.is_file()]
    assert any("s3://bucket/none.npy" in text for text in seen)
    with psycopg.connect(world.service.settings.database_url) as connection:
        named = connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'").fetchall()
        assert ("jobs",) in named
        rows = [
            str(connection.execute(sql.SQL("TABLE {}").format(sql.Identifier(name))).fetchall()) for (name,) in named
        ]
    for text in (*seen, *logs, *rows):
        for secret in (SECRET, TOKEN, "X-Amz-Signature"):
            assert secret not in text


_PAGES = ("/v1/jobs", "/v1/ops", "/v1/devices", "/openapi.json", "/metrics", "/healthz")


def client_headers(world: World) -> dict[str, str]:
    return {"Authorization": f"Bearer {world.service.token}"}


def test_a_job_that_waits_for_a_silent_server_is_cancelled_and_times_out(world: World) -> None:
    with world.service.client() as client:
        world.web.always |= {"0.npy": hang, "1.npy": hang}
        world.web.asked.clear()
        waiting = client.submit_reduce(world.web.url("0.npy"))
        until(lambda: bool(world.web.asked), 60.0)
        waiting.cancel()
        assert waiting.wait().status == "cancelled"
        late = client.submit_reduce(world.web.url("1.npy"), timeout_s=1)
        ended = late.wait()
        assert (ended.status, ended.reason) == ("failed", "timeout")
        world.web.always.clear()
        assert client.reduce(world.web.url("0.npy"), "max").value == NUMBERS[:25_000].max()
