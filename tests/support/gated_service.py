"""A worker of the CPU that stays in a job until its gate opens, and a dispatcher, both quick to judge."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from uuid import UUID

from tests.support.fleet import DISPATCHER, Fleet, fleet
from tests.support.ledger import Ledger
from tests.support.workers.gated import Gates
from warpfold.app.config import Settings

N = 1000
LEASE_S = 3.0


@dataclass(frozen=True)
class GatedJobs(Gates):
    """The gates, and the jobs that stand before them."""

    def submit(self, ledger: Ledger, n: int) -> UUID:
        """A job over `n` elements, which runs on when the gate `n` is open."""
        source = {"type": "generate", "distribution": "arange", "n": n, "dtype": "float64"}
        return ledger.submit(spec={"kind": "reduce", "op": "sum", "source": source}, timeout_s=600.0)

    def until(self, condition: Callable[[], bool]) -> None:
        give_up = time.monotonic() + 120
        while not condition():
            assert time.monotonic() < give_up, "waited in vain"
            time.sleep(0.01)


@contextmanager
def gated_service(settings: Settings, log: Path) -> Iterator[tuple[Fleet, GatedJobs]]:
    """The service at work; the gate N is closed."""
    gates = GatedJobs(log.parent / "gates")
    gates.close(N)
    quick = settings.model_copy(update={"lease_s": LEASE_S, "heartbeat_s": 0.1, "dispatch_interval_s": 0.1})
    worker = ("tests.support.workers.gated", str(gates.folder))
    with fleet(quick, log, worker=worker, dispatcher=DISPATCHER) as service:
        service.wait_until_logged("child ready")
        service.wait_until_logged('"event": "leading"')
        yield service, gates
