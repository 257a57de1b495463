"""`python -m benchmarks.sleeping SLOT SECONDS`: a worker whose child sleeps for each job instead of computing.

It serves a slot that this machine may not have, with the servers of a data folder: what slots share is measured so.
"""

import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from warpfold.app.jobs.attempt import Lease, Success
from warpfold.contract.measurement import Measurement
from warpfold.worker.messages import Tell

_POINT = Measurement(
    kind="reduce",
    op="sum",
    dtype="float64",
    strategy="exact",
    backend="cuda",
    device="none",
    n=1,
    bytes=8,
    samples=1,
)


@dataclass(frozen=True, slots=True)
class Sleeper:
    """Sleeps."""

    seconds: float
    device: Mapping[str, object]

    def run(self, lease: Lease, tell: Tell) -> Success:
        time.sleep(self.seconds)
        return Success({"value": 0.0}, (_POINT,))


def opened(seconds: float) -> Sleeper:
    """Opens at once."""
    return Sleeper(seconds, {"backend": "cuda", "name": "none"})


@contextmanager
def sleeping_slot(data_dir: Path, slot: str, seconds: float) -> Iterator[None]:
    """A worker process of its own, until the end of the block."""
    from warpfold.worker.embedded import EmbeddedPostgres, EmbeddedRedis

    environment = {
        **os.environ,
        "WARPFOLD_DATA_DIR": str(data_dir),
        "WARPFOLD_DATABASE_URL": EmbeddedPostgres(data_dir / "postgres").url,
        "WARPFOLD_REDIS_URL": EmbeddedRedis(data_dir / "redis").url,
    }
    command = [sys.executable, "-m", "benchmarks.sleeping", slot, str(seconds)]
    with subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL) as worker:
        try:
            yield
        finally:
            worker.terminate()


def main() -> int:
    # Imported here, because the spawned child runs this module too.
    from functools import partial

    from warpfold.app import logs
    from warpfold.app.config import load_settings
    from warpfold.worker.boot import describe, serve_slot
    from warpfold.worker.stop import Stop

    stop = Stop()
    logs.configure(role="worker", slot=sys.argv[1])
    stop.listen()
    return serve_slot(load_settings(), describe(sys.argv[1]), partial(opened, float(sys.argv[2])), stop)


if __name__ == "__main__":
    sys.exit(main())
