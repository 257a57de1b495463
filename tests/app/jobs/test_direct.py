"""Direct hand-over: a small job that comes while nothing waits goes to an idle slot that listens, and to no other."""

from collections.abc import Callable, Iterator
from datetime import timedelta
from uuid import uuid4

import pytest
from sqlalchemy import func, insert

from tests.support.dispatching import claim
from tests.support.ledger import Ledger
from tests.support.waiting import until
from warpfold.app.db import BlockingDatabase
from warpfold.app.jobs import accept, leases
from warpfold.app.jobs.accept import Key
from warpfold.app.jobs.attempt import Success
from warpfold.app.jobs.store import Job
from warpfold.app.quotas.quota import Limits
from warpfold.app.tables.users import quota_holds, quotas
from warpfold.worker.direct import DirectMessage, DirectMessages

LIMITS = Limits(queued=1000, high_per_hour=5)
Listens = Callable[[str], DirectMessages]


@pytest.fixture
def listens(database_url: str) -> Iterator[Listens]:
    """A worker that listens."""
    opened: list[DirectMessages] = []

    def listen(worker: str) -> DirectMessages:
        opened.append(DirectMessages(database_url, worker))
        opened[-1].listen()
        assert opened[-1].fileno() is not None
        return opened[-1]

    yield listen
    for messages in opened:
        messages.close()


@pytest.fixture
def slot_of(ledger: Ledger, database: BlockingDatabase) -> Callable[..., str | None]:
    """Accept a job as the api does, and say which slot it went to with its acceptance."""

    def accepted(
        *, owner: str = "ada", needs: str = "any", small: bool = True, key: Key | None = None, limits: Limits = LIMITS
    ) -> str | None:
        job = _job(ledger, owner, needs, small=small)
        submitted = database.run(accept.submit, job, key, limits)
        assert submitted.id == job.id
        assert ledger.column(job.id, "slot") == submitted.slot
        assert (ledger.column(job.id, "dispatched_at") is None) == (submitted.slot is None)
        return submitted.slot

    return accepted


SlotOf = Callable[..., str | None]


def _job(ledger: Ledger, owner: str = "ada", needs: str = "any", *, small: bool = True) -> Job:
    return Job.new(
        id=uuid4(),
        owner=owner,
        owner_id=ledger.owner(owner),
        kind="reduce",
        priority=1,
        needs=needs,
        timeout_s=60.0,
        spec="{}",
        small=small,
        request_id="a-request",
    )


def message(messages: DirectMessages) -> DirectMessage:
    came: list[DirectMessage] = []

    def look() -> bool:
        taken = messages.take()
        came.extend([] if taken is None else [taken])
        return bool(came)

    until(look)
    return came[0]


def test_the_worker_hears_of_its_job_and_no_other_worker_does(
    ledger: Ledger, database: BlockingDatabase, listens: Listens
) -> None:
    cpu, other = ledger.worker("cpu"), ledger.worker("cpu", host="there")
    ours, theirs = listens(cpu), listens(other)
    first, second = _job(ledger), _job(ledger)
    for job in (first, second):
        database.run(accept.submit, job, None, LIMITS)
    assert message(ours) == DirectMessage(first.id, 1)
    assert message(theirs) == DirectMessage(second.id, 1)  # the first slot has a job in hand
    assert ours.take() is theirs.take() is None


def test_with_a_key_it_is_the_same(ledger: Ledger, listens: Listens, slot_of: SlotOf) -> None:
    cpu = ledger.worker("cpu")
    listens(cpu)
    assert slot_of(key=Key("key", b"hash")) == cpu


def test_a_gpu_comes_before_a_cpu_and_the_gang_takes_what_needs_it(
    ledger: Ledger, listens: Listens, slot_of: SlotOf
) -> None:
    cpu, gpu, gang = (ledger.worker(slot) for slot in ("cpu", "cuda:0", "gang"))
    for worker in (cpu, gpu, gang):
        listens(worker)
    assert [slot_of() for _ in range(3)] == [gpu, cpu, None]
    assert slot_of(needs="gang") is None  # something waits now


def test_the_dispatcher_decides_where_no_slot_listens(ledger: Ledger, listens: Listens, slot_of: SlotOf) -> None:
    cpu = ledger.worker("cpu")
    assert slot_of() is None
    listens(cpu).close()
    assert slot_of() is None


@pytest.mark.parametrize("state", ["starting", "stopped"])
def test_a_slot_that_takes_no_jobs_gets_none(ledger: Ledger, listens: Listens, slot_of: SlotOf, state: str) -> None:
    listens(ledger.worker("cpu", state=state))
    assert slot_of() is None


def test_a_drained_slot_gets_none(ledger: Ledger, listens: Listens, slot_of: SlotOf) -> None:
    cpu = ledger.worker("cpu")
    listens(cpu)
    ledger.drain(cpu)
    assert slot_of() is None


def test_a_slot_gets_none_while_it_has_a_job_in_hand(
    ledger: Ledger, database: BlockingDatabase, listens: Listens, slot_of: SlotOf
) -> None:
    cpu = ledger.worker("cpu")
    ours = listens(cpu)
    assert slot_of() == cpu
    job_id = message(ours).job_id
    lease = claim(database, job_id, cpu)
    database.run(leases.succeed, [(lease, Success({}))])
    assert slot_of() == cpu


def test_nobody_is_passed_who_waits(ledger: Ledger, listens: Listens, slot_of: SlotOf) -> None:
    listens(ledger.worker("cpu"))
    ledger.submit(owner="bob", priority="low", needs="cuda")
    assert slot_of() is None


@pytest.mark.parametrize("job", [{"small": False}, {"needs": "gpu_first"}, {"needs": "cuda"}])
def test_the_dispatcher_decides_of_other_jobs(
    ledger: Ledger, listens: Listens, slot_of: SlotOf, job: dict[str, object]
) -> None:
    listens(ledger.worker("cpu"))
    assert slot_of(**job) is None


def test_limits_of_running_jobs_are_kept_by_the_dispatcher(ledger: Ledger, listens: Listens, slot_of: SlotOf) -> None:
    listens(ledger.worker("cpu"))
    assert slot_of(limits=Limits(running=5, queued=1000, high_per_hour=5)) is None


def test_a_users_own_limit_of_running_jobs_is_kept_by_the_dispatcher(
    ledger: Ledger, database: BlockingDatabase, listens: Listens, slot_of: SlotOf
) -> None:
    cpu = ledger.worker("cpu")
    listens(cpu)
    database.run(lambda connection: connection.execute(insert(quotas).values(user_id=ledger.owner("bob"), queued=5)))
    database.run(lambda connection: connection.execute(insert(quotas).values(user_id=ledger.owner("eve"), running=5)))
    assert slot_of(owner="bob") == cpu
    listens(ledger.worker("cpu", host="there"))
    assert slot_of(owner="eve") is None


def test_who_gets_no_gpu_today_gets_none_directly(
    ledger: Ledger, database: BlockingDatabase, listens: Listens, slot_of: SlotOf
) -> None:
    gpu, cpu = ledger.worker("cuda:0"), ledger.worker("cpu")
    listens(gpu)
    listens(cpu)
    hold = insert(quota_holds).values(
        user_id=ledger.owner("ada"), quota="gpu_seconds_per_day", limit=1.0, until=func.now() + timedelta(hours=1)
    )
    database.run(lambda connection: connection.execute(hold))
    assert slot_of() == cpu
    assert slot_of(owner="bob") == gpu
