from pathlib import Path

from redis import Redis

from tests.support.fleet import DISPATCHER, WORKER, fleet
from tests.support.ledger import Ledger
from warpfold.app.config import Settings
from warpfold.app.db import BlockingDatabase
from warpfold.app.jobs import leases, workers
from warpfold.app.jobs.attempt import Success
from warpfold.app.jobs.dispatch_state import Depth
from warpfold.contract.states import Status
from warpfold.worker.boot import describe
from warpfold.worker.dispatcher import Dispatcher, choose
from warpfold.worker.queue import AttemptQueues, rq_id
from warpfold.worker.stop import Stop

QUICK = {"lease_s": 10.0, "heartbeat_s": 0.1, "dispatch_interval_s": 0.1, "unavailable_after_s": 1.0}


def drain(database: BlockingDatabase, worker: str) -> None:
    assert database.run(workers.drain, worker)


def test_a_drained_slot_is_handed_nothing(ledger: Ledger, database: BlockingDatabase) -> None:
    cpu, gpu = ledger.worker("cpu"), ledger.worker("cuda:0")
    drain(database, gpu)
    jobs = [ledger.submit() for _ in range(3)]
    assert [(message.job_id, message.worker) for message in database.run(choose, Depth(5))] == [
        (job_id, cpu) for job_id in jobs
    ]


def test_what_waited_at_the_slot_goes_elsewhere_and_its_message_claims_nothing(
    ledger: Ledger, database: BlockingDatabase, settings: Settings, redis: Redis, stop: Stop
) -> None:
    dispatcher = Dispatcher(settings, database, AttemptQueues(redis), stop)
    gpu, job_id = ledger.worker("cuda:0"), ledger.submit()
    dispatcher.deliver()
    drain(database, gpu)
    cpu = ledger.worker("cpu")
    dispatcher.deliver()
    assert AttemptQueues(redis).waiting(cpu) == {rq_id(job_id, 1)}
    assert database.run(leases.claim, job_id, 1, gpu, 60.0) is None
    assert database.run(leases.claim, job_id, 1, cpu, 60.0) is not None


def test_the_running_job_is_finished(ledger: Ledger, database: BlockingDatabase) -> None:
    gpu, job_id = ledger.worker("cuda:0"), ledger.submit()
    lease = database.run(leases.claim, job_id, 1, gpu, 60.0)
    assert lease is not None
    drain(database, gpu)
    assert lease.job_id in database.run(leases.renew, [lease], 60.0)
    assert database.run(leases.succeed, [(lease, Success({}))])


def test_a_job_that_only_a_drained_slot_could_run_waits_and_does_not_fail(
    ledger: Ledger, database: BlockingDatabase, settings: Settings, redis: Redis, stop: Stop
) -> None:
    gpu = ledger.worker("cuda:0")
    drain(database, gpu)
    job_id = ledger.submit(needs="cuda")
    ledger.age(job_id, 1000)
    impatient = settings.model_copy(update={"unavailable_after_s": 0.5})
    Dispatcher(impatient, database, AttemptQueues(redis), stop).look_around()
    assert ledger.job(job_id).status is Status.QUEUED
    assert database.run(workers.resume, gpu)
    assert [message.worker for message in database.run(choose, Depth(2))] == [gpu]


def test_it_outlasts_restarts_of_worker_and_dispatcher(
    ledger: Ledger, database: BlockingDatabase, settings: Settings, tmp_path: Path
) -> None:
    quick = settings.model_copy(update=QUICK)
    source = {"type": "values", "values": [1, 2], "dtype": "float32"}
    spec = {"kind": "reduce", "op": "sum", "source": source}
    with fleet(quick, tmp_path / "log", worker=WORKER, dispatcher=DISPATCHER) as service:
        service.wait_until_logged("child ready")
        service.wait_until_logged('"event": "leading"')
        drain(database, describe("cpu").id)
        service.kill("worker")
        service.kill("dispatcher")
        service.wait_until_logged("child ready", times=2)
        service.wait_until_logged('"event": "leading"', times=2)
        job_id = ledger.submit(spec=spec)
        looks = ledger.submit(needs="cuda", spec=spec)  # the dispatcher gives up on it, and so has looked at both
        ledger.wait([looks], 60)
        assert ledger.job(job_id).status is Status.QUEUED
        assert database.run(workers.resume, describe("cpu").id)
        ledger.wait([job_id], 60)
        assert ledger.job(job_id).status is Status.SUCCEEDED
