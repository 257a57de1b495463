"""The slot `dask` of a running service, on a local cluster of its own."""

from pathlib import Path

from tests.support.fleet import DISPATCHER, fleet
from tests.support.ledger import Ledger
from tests.support.processes import is_spawned, wait_for_ends
from tests.support.waiting import until
from warpfold.app.config import Settings
from warpfold.app.db import BlockingDatabase
from warpfold.contract.states import Status

QUICK = {"lease_s": 10.0, "heartbeat_s": 0.1, "dispatch_interval_s": 0.1, "dask_processes": 1}


def job(n: int) -> dict[str, object]:
    source = {"type": "generate", "distribution": "arange", "n": n, "dtype": "float64"}
    return {"kind": "reduce", "op": "sum", "backend": "dask", "source": source, "partitions": 3}


def test_jobs_of_a_cluster_end_are_cancelled_and_leave_no_process(settings: Settings, tmp_path: Path) -> None:
    commands = {"dask": ("warpfold.worker", "--slot", "dask"), "dispatcher": DISPATCHER}
    with fleet(settings.model_copy(update=QUICK), tmp_path / "log", **commands) as service:
        service.wait_until_logged("child ready")
        database = BlockingDatabase(settings.database_url, application="test")
        ledger = Ledger(database)
        anywhere = ledger.submit()
        endless = ledger.submit(spec=job(1 << 40), needs="dask")
        ledger.until(endless, "status", Status.RUNNING.value)
        child = service.child("dask")
        cluster = until(lambda: [process for process in child.children(recursive=True) if is_spawned(process)])
        ledger.cancel(endless)
        after = ledger.submit(spec=job(3000), needs="dask")
        ledger.wait([endless, after], 120)
        assert ledger.job(endless).status == Status.CANCELLED
        assert ledger.job(after).status == Status.SUCCEEDED, ledger.job(after).error
        result = ledger.result(after)
        assert (result["value"], result["backend"], result["partitions"]["partitions"]) == (2999 * 1500.0, "dask", 3)
        assert ledger.job(anywhere).status == Status.QUEUED, "a cluster takes what asks for it"
        wait_for_ends([child, *cluster])
        database.close()
