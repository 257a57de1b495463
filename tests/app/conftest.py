from collections.abc import Iterator

import httpx
import psycopg
import pytest

from tests.support.api import Api, running_api
from tests.support.servers import fresh_database
from warpfold.app.config import Settings
from warpfold.worker.embedded import EmbeddedPostgres, EmbeddedRedis


@pytest.fixture(scope="session")
def shared_api(
    shared_postgres: EmbeddedPostgres, shared_redis: EmbeddedRedis, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Api]:
    """One api for all tests that do not break it or its users."""
    root = tmp_path_factory.mktemp("data")
    with fresh_database(shared_postgres) as url:
        settings = Settings(
            database_url=url, redis_url=shared_redis.url, data_dir=root / "warpfold", data_roots=(root.resolve(),)
        )
        with running_api(settings) as running:
            yield running


@pytest.fixture
def api(shared_api: Api) -> Iterator[Api]:
    """A running api without jobs, workers or measurements; its users stay."""
    with psycopg.connect(shared_api.settings.database_url, autocommit=True) as connection:
        connection.execute("delete from jobs")  # and with them events, keys, measurements; truncate takes longer
        connection.execute("delete from workers")
    yield shared_api
    shared_api.close_clients()


@pytest.fixture
def own_api(settings: Settings) -> Iterator[Api]:
    """An api for this test alone."""
    with running_api(settings) as running:
        yield running


@pytest.fixture
def http(api: Api) -> httpx.Client:
    """Ann's HTTP client."""
    return api.client()


@pytest.fixture
def without_timer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever waits for news of a job looks again when told, and not for minutes by themselves."""
    monkeypatch.setattr("warpfold.app.notifications.LOOK_AGAIN_S", 300.0)


@pytest.fixture
def remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who a token belongs to is kept for minutes, unless a change is announced."""
    monkeypatch.setattr("warpfold.app.auth.access._KEPT_S", 300.0)


@pytest.fixture
def refusing(http: httpx.Client) -> httpx.Client:
    """The same, named for tests whose requests are refused, or read only what is always there."""
    return http
