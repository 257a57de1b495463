from collections.abc import Iterator

import pytest

from tests.support.servers import fresh_database
from tests.support.service import Service, running_service
from warpfold.app.config import Settings
from warpfold.worker.embedded import EmbeddedPostgres, EmbeddedRedis


@pytest.fixture(scope="package")
def service(
    shared_postgres: EmbeddedPostgres, shared_redis: EmbeddedRedis, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Service]:
    """The service that the examples talk to."""
    root = tmp_path_factory.mktemp("service")
    with fresh_database(shared_postgres) as url:
        settings = Settings(database_url=url, redis_url=shared_redis.url, data_dir=root / "warpfold")
        with running_service(settings, root / "log") as running:
            yield running
