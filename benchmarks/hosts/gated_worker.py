"""`python -m benchmarks.hosts.gated_worker FOLDER`: a worker of the CPU that stays in a job while its gate is closed.

So a blow meets a machine in the middle of a job, however fast or slow the machine is. The drills of `benchmarks.hosts`
and the tests of faults run it.
"""

import json
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from warpfold.app.jobs.attempt import Lease, Success
from warpfold.worker.messages import Opener, Tell, Work


@dataclass(frozen=True)
class Gates:
    """The gates of jobs, by the number of the elements that they generate: closed where there is a file of that
    name."""

    folder: Path

    def close(self, n: int) -> None:
        self.folder.mkdir(exist_ok=True)
        (self.folder / str(n)).touch()

    def open(self, n: int) -> None:
        (self.folder / str(n)).unlink()

    def wait(self, n: object) -> None:
        while (self.folder / str(n)).exists():
            time.sleep(0.01)


@dataclass(frozen=True)
class Gated:
    """Computes as the child of the CPU's slot does, once the gate is open."""

    work: Work
    gates: Gates

    @property
    def device(self) -> Mapping[str, object]:
        return self.work.device

    def run(self, lease: Lease, tell: Tell) -> Success:
        self.gates.wait(json.loads(lease.spec)["source"].get("n"))
        return self.work.run(lease, tell)


def opened(opener: Opener, gates: Gates) -> Gated:
    """The body of the child."""
    return Gated(opener(), gates)


def main() -> int:
    # Imported here, because the spawned child runs this module too.
    from functools import partial

    from warpfold.app import logs
    from warpfold.app.config import load_settings
    from warpfold.worker.boot import describe, serve_slot
    from warpfold.worker.child import open_kernels
    from warpfold.worker.stop import Stop

    stop = Stop()
    logs.configure(role="worker", slot="cpu")
    settings = load_settings()
    stop.listen()
    info = describe("cpu")
    opener = partial(open_kernels, "cpu", info.id, settings.folders(), 8 << 20)
    return serve_slot(settings, info, partial(opened, opener, Gates(Path(sys.argv[1]))), stop)


if __name__ == "__main__":
    sys.exit(main())
