from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.servers import fresh_database
from tests.support.service import PATIENT_S, Service, running_service
from warpfold.app.config import Settings
from warpfold.client.api import Client
from warpfold.worker.embedded import EmbeddedPostgres, EmbeddedRedis


@pytest.fixture(scope="package")
def service(
    shared_postgres: EmbeddedPostgres, shared_redis: EmbeddedRedis, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Service]:
    """One service for all tests of clients."""
    root = tmp_path_factory.mktemp("service")
    (root / "data").mkdir()
    with fresh_database(shared_postgres) as url:
        settings = Settings(
            database_url=url,
            redis_url=shared_redis.url,
            data_dir=root / "warpfold",
            data_roots=((root / "data").resolve(),),
            lease_s=PATIENT_S,
        )
        with running_service(settings, root / "log") as running:
            yield running


@pytest.fixture(autouse=True)
def sent_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where clients of this test remember what they sent: not in the memory of the user who runs the test."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / ".cache"))
    return tmp_path / ".cache" / "warpfold" / "sent-files.json"


@pytest.fixture
def client(service: Service) -> Iterator[Client]:
    with service.client() as connected:
        yield connected
