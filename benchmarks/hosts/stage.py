"""The service on the machines of the drill: Postgres and Redis with passwords on one, and around them

- alpha: an api and a dispatcher,
- beta: an api, a dispatcher and a worker,
- gamma: a worker,
- user: nothing of the service; from there jobs are submitted.

No two machines share a file of the service: workers fetch uploaded arrays from the apis.
"""

import secrets
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import psycopg
from psycopg import sql
from redis import Redis

from benchmarks.hosts.gated_worker import Gates
from benchmarks.hosts.lab import Lab, Machine, lab, until, words_of
from warpfold import migrations
from warpfold.app.auth.access_tokens import Role, create_token
from warpfold.app.db import BlockingDatabase
from warpfold.worker.embedded import EmbeddedPostgres
from warpfold.worker.embedded.redis import redis_program

_STORE = "10.77.0.1"
_PORT = 8080
_DISK = 64 << 20
_START_S = 120.0
_SETTINGS = {
    "WARPFOLD_COMPILE_AHEAD": "false",
    "WARPFOLD_MEASURE_RATES": "false",
    "WARPFOLD_KEEP_FREE_BYTES": str(1 << 20),
}


@dataclass
class Store:
    """The machine of Postgres and Redis. What was committed is there after `kill -9`, but not after a loss of power."""

    machine: Machine
    data: Path
    password: str
    program: str = ""
    _postgres: int = 0
    _redis: int = 0

    @property
    def sockets(self) -> Path:
        return self.data.parent / "sockets"

    @property
    def observer_url(self) -> str:
        """Postgres for those who watch the drill: by a socket in the file system, which no cut of the wire reaches."""
        return f"postgresql://postgres@/warpfold?host={quote(str(self.sockets), safe='/')}"

    @property
    def database_url(self) -> str:
        return f"postgresql://warpfold:{self.password}@{_STORE}:5432/warpfold"

    @property
    def redis_url(self) -> str:
        return f"redis://:{self.password}@{_STORE}:6379/0"

    def start_postgres(self) -> None:
        owner = self.data.stat().st_uid
        words = (self.program, "-D", str(self.data), "-h", _STORE, "-k", str(self.sockets))
        self._postgres = self.machine.start(*words, user=owner)
        until(self._postgres_answers, _START_S, "Postgres answers")

    def start_redis(self) -> None:
        folder = self.machine.folder / "redis"
        folder.mkdir(exist_ok=True)
        self._redis = self.machine.start(
            *(str(redis_program()), "--bind", _STORE, "--port", "6379", "--requirepass", self.password),
            *("--dir", str(folder), "--appendonly", "yes", "--save", "", "--maxmemory-policy", "noeviction"),
            *("--unixsocket", str(folder / "redis.sock")),
        )
        until(self._redis_answers, _START_S, "Redis answers")

    def kill_postgres(self) -> None:
        self.machine.kill(self._postgres)
        until(lambda: not self.machine.alive(self._postgres), _START_S, "Postgres has ended")

    def kill_redis(self) -> None:
        self.machine.kill(self._redis)
        until(lambda: not self.machine.alive(self._redis), _START_S, "Redis has ended")

    def _postgres_answers(self) -> bool:
        if not self.machine.alive(self._postgres):  # those whom an earlier one left are still ending
            self.start_postgres()
        try:
            psycopg.connect(self.observer_url, connect_timeout=2).close()
        except psycopg.OperationalError:
            return False
        return True

    def _redis_answers(self) -> bool:
        path = self.machine.folder / "redis" / "redis.sock"
        try:
            with Redis(unix_socket_path=str(path), password=self.password) as client:
                return bool(client.ping())
        except Exception:
            return False


@dataclass
class Stage:
    """The machines with the service on them."""

    lab: Lab
    store: Store
    alpha: Machine
    beta: Machine
    gamma: Machine
    user: Machine
    gates: Gates
    token: str

    @property
    def apis(self) -> Mapping[str, str]:
        """The addresses of the apis, by the names of their machines."""
        return {machine.name: f"http://{machine.address}:{_PORT}" for machine in (self.alpha, self.beta)}

    @property
    def workers(self) -> tuple[Machine, ...]:
        return self.beta, self.gamma

    def start(self, machine: Machine) -> None:
        """Start what belongs on a machine."""
        environment = {
            "WARPFOLD_DATABASE_URL": self.store.database_url,
            "WARPFOLD_REDIS_URL": self.store.redis_url,
        }
        modules: list[tuple[str, ...]] = []
        if machine in (self.alpha, self.beta):
            modules.append(("warpfold.app", "--host", machine.address, "--port", str(_PORT)))
            modules.append(("warpfold.worker.dispatcher",))
        if machine in self.workers:
            modules.append(("benchmarks.hosts.gated_worker", str(self.gates.folder)))
        for module in modules:
            machine.start(*words_of(module), environment=environment)

    def boot(self, machine: Machine) -> None:
        """Turn a machine on again, with the service on it."""
        machine.boot()
        self.start(machine)


@contextmanager
def stage(folder: Path, cluster: Path | None = None, **settings: str) -> Iterator[Stage]:
    """The service, started, with its files in `folder`. `cluster` has the files of a migrated Postgres, whose database
    warpfold_template is copied; without one a Postgres is made and migrated."""
    folder.chmod(0o711)  # Postgres does not run as root
    addresses = {name: f"10.77.0.{number}" for number, name in enumerate(("alpha", "beta", "gamma", "user"), start=2)}
    fetching = {
        "WARPFOLD_DATASET_URLS": " ".join(f"http://{addresses[name]}:{_PORT}" for name in ("alpha", "beta")),
        "WARPFOLD_WORKER_TOKEN": secrets.token_hex(32),
    }
    with lab(folder, {**_SETTINGS, **fetching, **settings}) as built:
        built.shape(0.0, 0.0)
        store = Store(built.machine("store", _STORE), folder / "store" / "pg", secrets.token_hex(16))
        token = _prepare(store, cluster)
        store.start_postgres()
        store.start_redis()
        machines = {name: built.machine(name, address, _DISK) for name, address in addresses.items()}
        alpha, beta, gamma, user = machines.values()
        made = Stage(built, store, alpha, beta, gamma, user, Gates(folder / "gates"), token)
        for machine in (beta, gamma, alpha):
            made.start(machine)
        yield made


def _prepare(store: Store, cluster: Path | None) -> str:
    """Make the database, its role and a token, on a Postgres that no other machine reaches yet."""
    if cluster is not None:
        subprocess.run(["cp", "-a", cluster, store.data], check=True)  # with the owner, who is not root
    fast = {"fsync": "off", "full_page_writes": "off", "shared_buffers": "64MB", "max_connections": "200"}
    server = EmbeddedPostgres(store.data, fast)
    server.start()
    try:
        store.program = str(Path(f"/proc/{server.pid}/exe").readlink())
        with psycopg.connect(server.url, autocommit=True) as connection:
            template = "template1" if cluster is None else "warpfold_template"
            connection.execute(sql.SQL("create database warpfold template {}").format(sql.Identifier(template)))
            connection.execute(sql.SQL("create role warpfold login password {}").format(sql.Literal(store.password)))
        url = server.url.replace("@/postgres?", "@/warpfold?")
        if cluster is None:
            migrations.upgrade(url)
        with psycopg.connect(url, autocommit=True) as connection:
            for kind in ("tables", "sequences"):
                connection.execute(f"grant all on all {kind} in schema public to warpfold")
        database = BlockingDatabase(url, application="drill")
        token = database.run(create_token, "ada", Role.ADMIN)
        database.close()
    finally:
        server.stop()
    with (store.data / "pg_hba.conf").open("a") as rules:
        rules.write(f"host all all {_STORE}/24 scram-sha-256\n")
    store.sockets.mkdir()
    shutil.chown(store.sockets, store.data.stat().st_uid)
    return token
