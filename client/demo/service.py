"""A service for the demo, on a free port and with a temporary data folder, which is removed afterwards."""

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

READY = "Warpfold ready at "


class StartFailed(Exception):
    """`warpfold serve` ended before it was ready."""


@dataclass(frozen=True, slots=True)
class Service:
    """A running service: its address and a token for it."""

    url: str
    token: str


@contextmanager
def running_service(root: Path, *options: str) -> Iterator[Service]:
    """Run `warpfold serve` with its data under `root`; files under `root`/data may be named by jobs."""
    data_dir = root / "warpfold"
    environment = {**os.environ, "WARPFOLD_DATA_ROOTS": str(root / "data")}
    command = [sys.executable, "-P", "-m", "warpfold", "serve"]
    command += ["--port", str(free_port()), "--data-dir", str(data_dir), *options]
    log = root / "serve.log"
    with (
        log.open("w") as errors,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True, env=environment) as serve,
    ):
        try:
            assert serve.stdout is not None
            line = serve.stdout.readline()
            if not line.startswith(READY):
                serve.terminate()
                serve.wait()
                raise StartFailed(f"{line}{log.read_text()}".strip())
            yield Service(line.removeprefix(READY).strip(), (data_dir / "token").read_text().strip())
        finally:
            serve.terminate()
            serve.wait()  # after Ctrl-C `with` does not, and the folder must not be removed under running servers


def free_port() -> int:
    """A port of the loopback on which nothing listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
