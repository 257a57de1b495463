from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.docs.commands import command_server
from tests.support.servers import fresh_database
from tests.support.service import PATIENT_S, Service, running_service
from warpfold.app.config import Settings
from warpfold.worker.embedded import EmbeddedPostgres, EmbeddedRedis


@pytest.fixture(scope="package")
def service(
    shared_postgres: EmbeddedPostgres, shared_redis: EmbeddedRedis, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Service]:
    """The service that the examples talk to."""
    root = tmp_path_factory.mktemp("service")
    with fresh_database(shared_postgres) as url:
        settings = Settings(database_url=url, redis_url=shared_redis.url, data_dir=root / "warpfold", lease_s=PATIENT_S)
        with running_service(settings, root / "log") as running:
            yield running


@pytest.fixture(scope="package")
def command_address() -> Iterator[Path]:
    """Where the examples have their commands run."""
    with command_server() as address:
        yield address
