from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from uuid import UUID

import pytest
from redis import Redis
from sqlalchemy import func

from tests.support.ledger import Ledger
from warpfold.app.config import Settings
from warpfold.app.db import BlockingDatabase
from warpfold.app.jobs import leases
from warpfold.app.jobs.attempt import Success
from warpfold.app.jobs.dispatch_state import Depth
from warpfold.app.quotas import holds, quota
from warpfold.app.quotas.quota import Hold, Limits, QuotaName
from warpfold.contract.states import Status
from warpfold.worker.dispatcher import Dispatcher, choose
from warpfold.worker.queue import AttemptQueues
from warpfold.worker.stop import Stop


@pytest.fixture
def limited(settings: Settings, database: BlockingDatabase, redis: Redis, stop: Stop) -> Dispatcher:
    """A dispatcher whose users may use a GPU for a tenth of a second a day: the tests may run right after midnight."""
    return Dispatcher(settings.model_copy(update={"gpu_seconds_per_day": 0.1}), database, AttemptQueues(redis), stop)


def put(ledger: Ledger, user: str, limits: Limits) -> None:
    ledger.owner(user)
    assert ledger.database.run(quota.put_limits, user, limits)


def ran_on(ledger: Ledger, worker: str, seconds: float, owner: str = "ada") -> None:
    """A job that ended just now after so many seconds."""
    job_id = ledger.submit(owner=owner)
    lease = ledger.database.run(leases.claim, job_id, 1, worker, 60.0)
    assert lease is not None
    began(ledger, job_id, seconds)
    assert ledger.database.run(leases.succeed, [(lease, Success({}))])


def began(ledger: Ledger, job_id: UUID, seconds: float) -> None:
    """As if the job had started so many seconds ago."""
    ledger.set(job_id, started_at=func.now() - func.make_interval(0, 0, 0, 0, 0, 0, seconds))


def test_no_more_of_an_owners_jobs_are_in_hand_than_may_run(ledger: Ledger, database: BlockingDatabase) -> None:
    for slot in ("cpu", "cuda:0", "cuda:1"):
        ledger.worker(slot)
    put(ledger, "ada", Limits(running=2))
    mine = [ledger.submit(owner="ada") for _ in range(5)]
    yours = [ledger.submit(owner="bob") for _ in range(5)]
    handed = [message.job_id for message in database.run(choose, Depth(3))]
    assert [job_id for job_id in handed if job_id in mine] == mine[:2]
    assert [job_id for job_id in handed if job_id in yours] == yours


def test_a_place_that_becomes_free_is_taken_in_fair_order(ledger: Ledger, database: BlockingDatabase) -> None:
    cpu = ledger.worker("cpu")
    put(ledger, "ada", Limits(running=1))
    mine = [ledger.submit(owner="ada") for _ in range(2)]
    [message] = database.run(choose, Depth(4))
    lease = database.run(leases.claim, message.job_id, 1, cpu, 60.0)
    assert lease is not None
    assert database.run(choose, Depth(4)) == []
    database.run(leases.succeed, [(lease, Success({}))])
    assert [message.job_id for message in database.run(choose, Depth(4))] == [mine[1]]


def test_the_settings_limit_everybody_for_whom_nothing_was_set(ledger: Ledger, database: BlockingDatabase) -> None:
    ledger.worker("cpu")
    put(ledger, "bob", Limits(running=3))
    owners = {ledger.submit(owner=owner): owner for owner in ("ada", "bob") for _ in range(5)}
    by_owner = Counter(owners[message.job_id] for message in database.run(choose, Depth(10), 1))
    assert by_owner == {"ada": 1, "bob": 3}


def test_who_may_run_nothing_waits_and_is_told_so(
    ledger: Ledger, database: BlockingDatabase, settings: Settings, redis: Redis, stop: Stop
) -> None:
    ledger.worker("cpu")
    put(ledger, "ada", Limits(running=0))
    job_id = ledger.submit(owner="ada")
    dispatcher = Dispatcher(settings, database, AttemptQueues(redis), stop)
    dispatcher.look_around()
    dispatcher.deliver()
    job = ledger.job(job_id)
    assert (job.status, job.hold) == (Status.QUEUED, Hold(QuotaName.RUNNING, 0.0, None))
    assert job.estimated_start_at is None
    put(ledger, "ada", Limits())
    Dispatcher(settings, database, AttemptQueues(redis), stop).look_around()
    assert ledger.job(job_id).hold is None


def test_after_the_gpu_seconds_of_the_day_jobs_wait_for_midnight(
    ledger: Ledger, database: BlockingDatabase, limited: Dispatcher
) -> None:
    gpu = ledger.worker("cuda:0")
    ran_on(ledger, gpu, 11.0)
    mine, yours = ledger.submit(owner="ada", needs="cuda"), ledger.submit(owner="bob", needs="cuda")
    limited.look_around()
    assert [message.job_id for message in database.run(choose, Depth(4))] == [yours]
    hold = ledger.job(mine).hold
    assert hold is not None
    assert (hold.quota, hold.limit) == (QuotaName.GPU_SECONDS_PER_DAY, 0.1)
    assert hold.until is not None
    assert (hold.until.hour, hold.until.minute, hold.until.utcoffset()) == (0, 0, hold.until - hold.until)
    assert hold.until > ledger.job(mine).created_at
    assert ledger.job(yours).hold is None


def test_they_may_still_run_on_a_cpu(ledger: Ledger, database: BlockingDatabase, limited: Dispatcher) -> None:
    gpu, cpu = ledger.worker("cuda:0"), ledger.worker("cpu")
    ran_on(ledger, gpu, 11.0)
    job_id = ledger.submit(needs="any")
    limited.look_around()
    assert ledger.job(job_id).hold is None
    assert [message.worker for message in database.run(choose, Depth(4))] == [cpu]


def test_seconds_on_a_cpu_and_before_midnight_cost_nothing(ledger: Ledger, database: BlockingDatabase) -> None:
    ran_on(ledger, ledger.worker("cpu"), 100.0)
    ran_on(ledger, ledger.worker("cuda:0"), 40 * 86400.0)
    [theirs] = database.run(quota.all_quotas, Limits())
    assert 0 <= theirs.usage.gpu_seconds_today <= 86400.0


def test_a_running_job_counts_while_it_runs(ledger: Ledger, database: BlockingDatabase, limited: Dispatcher) -> None:
    gpu = ledger.worker("cuda:0")
    running, waiting = ledger.submit(needs="cuda"), ledger.submit(needs="cuda")
    assert database.run(leases.claim, running, 1, gpu, 60.0) is not None
    began(ledger, running, 12.0)
    limited.look_around()
    assert database.run(choose, Depth(4)) == []
    assert ledger.job(waiting).hold is not None
    assert ledger.job(running).hold is None


def test_more_seconds_end_the_wait(ledger: Ledger, database: BlockingDatabase, limited: Dispatcher) -> None:
    ran_on(ledger, ledger.worker("cuda:0"), 11.0)
    job_id = ledger.submit(needs="cuda")
    limited.look_around()
    put(ledger, "ada", Limits(gpu_seconds_per_day=86400.0))
    database.run(holds.refresh, Limits(gpu_seconds_per_day=0.1))
    assert [message.job_id for message in database.run(choose, Depth(4))] == [job_id]


def test_what_ended_gives_the_pace_of_what_waits(ledger: Ledger, database: BlockingDatabase) -> None:
    cpu = ledger.worker("cpu")
    first = ledger.submit()
    assert ledger.start(first) is not None  # a free slot, and nothing ahead
    ran_on(ledger, cpu, 60.0)
    second, third = ledger.submit(), ledger.submit()
    starts = [ledger.start(job_id) for job_id in (first, second, third)]
    assert starts[0] is not None
    assert starts[1] is not None
    assert starts[2] is not None
    assert 55 < (starts[1] - starts[0]).total_seconds() < 115
    assert 55 < (starts[2] - starts[1]).total_seconds() < 115


def test_without_a_pace_or_a_slot_the_start_is_unknown(ledger: Ledger, database: BlockingDatabase) -> None:
    alone = ledger.submit()
    assert ledger.start(alone) is None
    ledger.worker("cpu")
    assert ledger.start(ledger.submit()) is None  # what is ahead never ran before


def test_two_dispatchers_may_look_at_once(ledger: Ledger, database: BlockingDatabase) -> None:
    ledger.worker("cpu")
    put(ledger, "ada", Limits(running=0))
    ledger.submit(owner="ada")
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: database.run(holds.refresh, Limits()), range(40)))
    assert database.run(holds.refresh, Limits()) == []
