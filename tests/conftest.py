"""Fixtures that every folder of tests may use. Servers are real and are started on first use."""

import gc
import os
import signal
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import httpx
import psycopg
import pytest
from hypothesis import HealthCheck
from hypothesis import settings as hypothesis_settings
from redis import Redis

from tests.support import warm
from tests.support.api import Api, running_api
from tests.support.clock import HandClock
from tests.support.ledger import Ledger
from tests.support.servers import (
    Servers,
    created_database,
    fresh_database,
    migrated_cluster,
    own_servers,
    postgres_server,
    redis_server,
)
from tests.support.warm_children import warm_children
from warpfold.app.config import Settings
from warpfold.app.db import BlockingDatabase
from warpfold.worker.embedded import EmbeddedPostgres, EmbeddedRedis
from warpfold.worker.nursery import Nursery
from warpfold.worker.queue import connect
from warpfold.worker.stop import Stop

# Before any file of tests is imported: the same examples every time, and no deadline, as a first example may compile.
hypothesis_settings.register_profile("warpfold", deadline=None, derandomize=True, database=None)
hypothesis_settings.load_profile("warpfold")
# Other examples every time, for `make fuzz`, which loads it by name.
hypothesis_settings.register_profile(
    "fuzz",
    deadline=None,
    derandomize=False,
    database=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)


def pytest_configure() -> None:
    """Workers of the tests compile what they need and nothing ahead, and have no spare child: each service would spend
    half a minute on the one, and seconds on the other. Their benchmarks displace a small cache: displacing that of a
    large server takes seconds a run."""
    os.environ.setdefault("WARPFOLD_COMPILE_AHEAD", "false")
    os.environ.setdefault("WARPFOLD_SPARE_CHILD", "false")
    os.environ.setdefault("WARPFOLD_MEASURE_RATES", "false")
    os.environ.setdefault("WARPFOLD_CPU_CACHE_BYTES", str(8 << 20))
    # Machine code and bytecode are compiled once for all tests, not once for each process that a test starts.
    os.environ.setdefault("NUMBA_CACHE_DIR", str(Path(tempfile.gettempdir()) / "warpfold-tests-numba"))
    # A shell that runs the tests in its background has them ignore Ctrl-C, and with them all processes that they start.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    sys.dont_write_bytecode = False
    gc.disable()  # until everything is collected: nothing of that is ever garbage, however often it is looked through


@pytest.hookimpl(tryfirst=True)
def pytest_collection(session: pytest.Session) -> None:
    """Where several processes share the tests, each imports its share of their files before it collects all."""
    worker = getattr(session.config, "workerinput", None)
    if worker is not None:
        from tests.support.sharing import import_share

        folders = [session.config.rootpath / argument for argument in session.config.args]
        import_share(folders, int(worker["workerid"].removeprefix("gw")), int(worker["workercount"]))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Where several processes share the tests, all list them in the order in which they are taken."""
    if hasattr(config, "workerinput"):
        from tests.support.sharing import in_order

        items[:] = in_order(items)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> object:
    """`--dist loadfile` is as tests/support/sharing.py says. Tests need pytest-xdist only where it shares them."""
    if config.getoption("dist") != "loadfile":
        return None
    from tests.support.sharing import WholeFiles

    return WholeFiles(config, log)


def pytest_collection_finish() -> None:
    """The garbage collector looks no more through the collected tests, which stay until the end."""
    gc.freeze()
    gc.enable()


@pytest.fixture(scope="session", autouse=True)
def compiled_by_one_process() -> None:
    """Where several processes of the tests call the same function of Numba, one compiles it."""
    from tests.support.compiling import compile_by_turns  # after `pytest_configure` has named the cache

    compile_by_turns(Path(os.environ["NUMBA_CACHE_DIR"]) / "turns")


@pytest.fixture(scope="session", autouse=True)
def forked_children() -> Iterator[None]:
    """Processes that tests spawn by way of our code are forks; `real_children` is for tests of what a start does."""
    with warm_children(warm.nursery):
        yield
    if warm.nursery.cache_info().currsize:
        warm.nursery().close()


@pytest.fixture(scope="session")
def nursery() -> Nursery:
    """The nursery of the children of slots that tests make."""
    return warm.nursery()


# --- servers and settings


@pytest.fixture(scope="session")
def cluster() -> Iterator[Path]:
    """The files of a migrated Postgres, of which every server begins with a copy."""
    with migrated_cluster() as path:
        yield path


@pytest.fixture(scope="session")
def shared_postgres(cluster: Path) -> Iterator[EmbeddedPostgres]:
    """One Postgres for all tests that do not break it."""
    with postgres_server(cluster) as server:
        yield server


@pytest.fixture(scope="session")
def shared_redis() -> Iterator[EmbeddedRedis]:
    """One Redis for all tests that do not break it."""
    with redis_server() as server:
        yield server


@pytest.fixture(scope="session")
def administrator(shared_postgres: EmbeddedPostgres) -> Iterator[psycopg.Connection]:
    """The connection that makes and drops the databases of all tests."""
    with psycopg.connect(shared_postgres.url, autocommit=True) as connection:
        yield connection


@pytest.fixture
def database_url(shared_postgres: EmbeddedPostgres, administrator: psycopg.Connection) -> Iterator[str]:
    """A migrated, empty database of the test's own."""
    with created_database(shared_postgres, administrator) as url:
        yield url


@pytest.fixture
def redis_url(shared_redis: EmbeddedRedis) -> str:
    """An empty Redis."""
    with Redis.from_url(shared_redis.url) as client:
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
def servers(cluster: Path) -> Iterator[Servers]:
    """A Postgres and a Redis for this test alone, to be killed and restarted."""
    with own_servers(cluster) as own:
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


# --- what tests of single modules take in hand


@pytest.fixture
def database(settings: Settings) -> Iterator[BlockingDatabase]:
    """The test's own connections to its database."""
    database = BlockingDatabase(settings.database_url, application="test", pool_size=4)
    yield database
    database.close()


@pytest.fixture
def ledger(database: BlockingDatabase) -> Ledger:
    """Jobs of the test's database: to submit, and to look at."""
    return Ledger(database)


@pytest.fixture
def redis(settings: Settings) -> Iterator[Redis]:
    """A client of the Redis of `settings`."""
    with connect(settings.redis_url, answer_within_s=60.0) as client:
        yield client


@pytest.fixture
def stop() -> Iterator[Stop]:
    """A request to stop that nobody has made yet."""
    stop = Stop()
    yield stop
    stop.close()


@pytest.fixture
def clock() -> HandClock:
    """A clock that only the test moves."""
    return HandClock()


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """The file that the test's processes write to."""
    return tmp_path / "processes.log"


# --- an api that runs


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


@pytest.fixture(scope="session")
def sweeper(shared_api: Api) -> Iterator[psycopg.Connection]:
    """A connection to the database of the shared api: to connect takes longer than to empty the tables."""
    with psycopg.connect(shared_api.settings.database_url, autocommit=True) as connection:
        yield connection


@pytest.fixture
def api(shared_api: Api, sweeper: psycopg.Connection) -> Iterator[Api]:
    """A running api without jobs, workers or measurements; its users stay."""
    sweeper.execute("delete from jobs")  # and with them events, keys, measurements; truncate takes longer
    sweeper.execute("delete from batches")
    sweeper.execute("delete from workers")
    sweeper.execute("delete from webhook_secrets")  # a walk over all routes makes one
    sweeper.execute("delete from turns")  # places in the queue depend on who had the last one
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
def refusing(http: httpx.Client) -> httpx.Client:
    """Ann's HTTP client, for tests whose requests are refused, or read only what is always there."""
    return http
