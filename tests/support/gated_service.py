"""A CPU worker that stays in a job until the job's gate opens, and a dispatcher. Both have short time limits."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from uuid import UUID

from benchmarks.hosts.gated_worker import Gates
from tests.support.fleet import DISPATCHER, Fleet, fleet
from tests.support.ledger import Ledger
from tests.support.waiting import until
from warpfold.app.config import Settings
from warpfold.app.db import BlockingDatabase
from warpfold.contract.states import Status
from warpfold.worker.embedded import EmbeddedServer

N = 1000
LEASE_S = 3.0

# A lease outlasts what a loaded machine may keep a worker from its heartbeat.
QUICK = {"lease_s": 10.0, "heartbeat_s": 0.1, "dispatch_interval_s": 0.1}


@dataclass(frozen=True)
class GatedJobs(Gates):
    """The gates, and the jobs that stand before them."""

    def submit(self, ledger: Ledger, n: int) -> UUID:
        """A job over `n` elements, which runs on when the gate `n` is open."""
        source = {"type": "generate", "distribution": "arange", "n": n, "dtype": "float64"}
        return ledger.submit(spec={"kind": "reduce", "op": "sum", "source": source}, timeout_s=600.0)


@contextmanager
def gated_service(settings: Settings, log: Path) -> Iterator[tuple[Fleet, GatedJobs]]:
    """The service at work; the gate N is closed."""
    gates = GatedJobs(log.parent / "gates")
    gates.close(N)
    quick = settings.model_copy(update={"lease_s": LEASE_S, "heartbeat_s": 0.1, "dispatch_interval_s": 0.1})
    worker = ("benchmarks.hosts.gated_worker", str(gates.folder))
    with fleet(quick, log, worker=worker, dispatcher=DISPATCHER) as service:
        service.wait_until_logged("child ready")
        service.wait_until_logged('"event": "leading"')
        yield service, gates


@contextmanager
def running(settings: Settings, log: Path, gates: Gates) -> Iterator[tuple[Fleet, Ledger]]:
    """A worker and a dispatcher at work."""
    worker = ("benchmarks.hosts.gated_worker", str(gates.folder))
    database = BlockingDatabase(settings.database_url, application="test")
    quick = settings.model_copy(update=QUICK)
    try:
        with fleet(quick, log, worker=worker, dispatcher=DISPATCHER) as service:
            service.wait_until_logged("child ready")
            service.wait_until_logged('"event": "leading"')
            yield service, Ledger(database)
    finally:
        database.close()


def until_running(ledger: Ledger, job_id: UUID) -> None:
    until(lambda: ledger.column(job_id, "status") == Status.RUNNING, 120)


def away(server: EmbeddedServer, end: Callable[[EmbeddedServer], None]) -> None:
    """End a server, and bring it back after a while."""
    end(server)
    time.sleep(0.3)
    server.start()
