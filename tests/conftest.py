"""Fixtures that every folder of tests may use. Servers are real and started on first use."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis

from tests.support.servers import Servers, fresh_database, own_servers, postgres_server, redis_server
from warpfold.app.config import Settings
from warpfold.worker.embedded import EmbeddedPostgres, EmbeddedRedis


def pytest_configure() -> None:
    """Workers of the tests compile what they need and nothing ahead: each service would spend half a minute on it."""
    os.environ.setdefault("WARPFOLD_COMPILE_AHEAD", "false")


@pytest.fixture(scope="session")
def shared_postgres() -> Iterator[EmbeddedPostgres]:
    """One Postgres for all tests that do not break it."""
    with postgres_server() as server:
        yield server


@pytest.fixture(scope="session")
def shared_redis() -> Iterator[EmbeddedRedis]:
    """One Redis for all tests that do not break it."""
    with redis_server() as server:
        yield server


@pytest.fixture
def database_url(shared_postgres: EmbeddedPostgres) -> Iterator[str]:
    """A migrated, empty database of the test's own."""
    with fresh_database(shared_postgres) as url:
        yield url


@pytest.fixture
def redis_url(shared_redis: EmbeddedRedis) -> str:
    """An empty Redis."""
    with redis.Redis.from_url(shared_redis.url) as client:
        client.flushall()
    return shared_redis.url


@pytest.fixture
def data_root(tmp_path: Path) -> Path:
    """The folder that `path` sources may name."""
    root = tmp_path / "data"
    root.mkdir()
    return root.resolve()


@pytest.fixture
def settings(database_url: str, redis_url: str, tmp_path: Path, data_root: Path) -> Settings:
    """Settings of a service on the shared servers; `model_copy(update=…)` to vary them."""
    return Settings(
        database_url=database_url, redis_url=redis_url, data_dir=tmp_path / "warpfold", data_roots=(data_root,)
    )


@pytest.fixture
def servers() -> Iterator[Servers]:
    """A Postgres and a Redis for this test alone, to be killed and restarted."""
    with own_servers() as own:
        yield own


@pytest.fixture
def fragile_settings(servers: Servers, tmp_path: Path, data_root: Path) -> Settings:
    """Settings of a service on servers that the test may break."""
    return Settings(
        database_url=servers.database_url,
        redis_url=servers.redis_url,
        data_dir=tmp_path / "warpfold",
        data_roots=(data_root,),
    )
