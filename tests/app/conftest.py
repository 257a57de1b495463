from collections.abc import Iterator

import httpx
import pytest

from app.config import Settings
from tests.app.api import Api, running_api
from tests.servers import fresh_database
from worker.embedded import EmbeddedPostgres, EmbeddedRedis


@pytest.fixture(scope="module")
def refusing(
    shared_postgres: EmbeddedPostgres, shared_redis: EmbeddedRedis, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[httpx.Client]:
    """Ann's client of an api shared by a module's tests of requests that are refused and so change nothing."""
    with fresh_database(shared_postgres) as url:
        root = tmp_path_factory.mktemp("data")
        with running_api(Settings(database_url=url, redis_url=shared_redis.url, data_roots=(root,))) as running:
            yield running.client()


@pytest.fixture
def api(settings: Settings) -> Iterator[Api]:
    """A running api on a database of its own."""
    with running_api(settings) as running:
        yield running


@pytest.fixture
def http(api: Api) -> httpx.Client:
    """Ann's HTTP client."""
    return api.client()
