"""The service on four machines, of which some are lost: network namespaces with a wire that delays and loses packets.

`python -m benchmarks.hosts` strikes ten blows while 500 jobs are submitted; here are two, with short leases.
"""

from pathlib import Path

import pytest

from benchmarks.hosts import calls
from benchmarks.hosts.blows import cut_off_leader_with_worker, power_off_leader
from benchmarks.hosts.drill import Drill
from benchmarks.hosts.stage import stage
from tests.support.servers import folder

QUICK = {
    "WARPFOLD_LEASE_S": "3",
    "WARPFOLD_MAX_LOSSES": "20",  # where a loaded machine keeps a worker from its heartbeat, too
    "WARPFOLD_LEAD_S": "2",
    "WARPFOLD_HEARTBEAT_S": "0.2",
    "WARPFOLD_DISPATCH_INTERVAL_S": "0.2",
    "WARPFOLD_SPARE_CHILD": "false",
}
JOBS = 10


def test_machines_that_are_lost_lose_no_job_and_run_none_twice(cluster: Path) -> None:
    if (why := calls.why_not()) is not None:
        pytest.skip(why)
    with folder() as files, stage(files, cluster, **QUICK) as on, calls.inside_network(on.user.pid):
        drill = Drill(on)
        try:
            for machine in on.workers:
                drill.until_ready(machine)
            drill.upload(2)
            on.lab.shape(delay_s=0.005, loss=0.01)
            for blow in (cut_off_leader_with_worker, power_off_leader):
                blow(drill, JOBS)
            drill.settle()
            assert len(drill.elsewhere_s) == 1
        finally:
            drill.close()
