"""`python -m tests.support.workers.gated FOLDER`: a worker of the CPU that stays in a job while its gate is closed.

So what is to happen in the middle of a job happens there, however fast or slow the machine is.
"""

import json
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from warpfold.app.jobs.attempt import Lease, Success
from warpfold.worker.messages import Tell, Work


@dataclass(frozen=True)
class Gates:
    """The gates of jobs, by the length of their data: closed where there is a file of that name."""

    folder: Path

    def close(self, n: int) -> None:
        self.folder.mkdir(exist_ok=True)
        (self.folder / str(n)).touch()

    def open(self, n: int) -> None:
        (self.folder / str(n)).unlink()

    def wait(self, n: int) -> None:
        while (self.folder / str(n)).exists():
            time.sleep(0.005)


@dataclass(frozen=True)
class Gated:
    """Computes as the child of the CPU's slot does, once the gate is open."""

    work: Work
    gates: Gates

    @property
    def device(self) -> Mapping[str, object]:
        return self.work.device

    def run(self, lease: Lease, tell: Tell) -> Success:
        self.gates.wait(json.loads(lease.spec)["source"]["n"])
        return self.work.run(lease, tell)


def opened(worker: str, gates: Gates) -> Gated:
    from warpfold.contract.folders import Folders
    from warpfold.worker.child import open_kernels

    return Gated(open_kernels("cpu", worker, Folders((), Path()), 8 << 20), gates)


def main() -> int:
    # Imported here, because the spawned child runs this module too.
    from functools import partial

    from warpfold.app import logs
    from warpfold.app.config import load_settings
    from warpfold.worker.boot import describe, serve_slot
    from warpfold.worker.stop import Stop

    stop = Stop()
    logs.configure(role="worker", slot="cpu")
    stop.listen()
    info = describe("cpu")
    return serve_slot(load_settings(), info, partial(opened, info.id, Gates(Path(sys.argv[1]))), stop)


if __name__ == "__main__":
    sys.exit(main())
