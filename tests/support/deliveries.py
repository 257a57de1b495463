"""Jobs with webhooks, the sender that reports their ends, and the outcomes of the deliveries."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from uuid import UUID, uuid4

from sqlalchemy import Connection, insert, update

from tests.support.ledger import Ledger
from tests.support.waiting import until
from warpfold.app.config import Settings
from warpfold.app.jobs import leases
from warpfold.app.jobs.attempt import Success
from warpfold.app.tables.batches import batches
from warpfold.app.tables.jobs import jobs
from warpfold.app.webhooks import repository
from warpfold.app.webhooks.message import new_secret
from warpfold.app.webhooks.repository import Deliveries, State
from warpfold.contract.states import Reason
from warpfold.worker.webhooks.sender import Sender

SECRET = new_secret()


@contextmanager
def sending(settings: Settings, schedule: Sequence[float] = (0.05, 0.05)) -> Iterator[None]:
    sender = Sender(settings, schedule=schedule)
    sender.start()
    try:
        yield
    finally:
        sender.stop()


def hooked(ledger: Ledger, url: str, owner: str = "ada", secret: str | None = SECRET) -> UUID:
    """A job that is to tell `url` of its end."""
    job_id = ledger.submit(owner=owner)
    assert ledger.database.run(repository.register, job_id, ledger.owner(owner), url, secret)
    return job_id


def hooked_batch(ledger: Ledger, url: str, count: int) -> tuple[UUID, list[UUID]]:
    """A batch that is to tell `url` of its end, and its jobs."""
    batch_id, owner_id = uuid4(), ledger.owner("ada")
    ids = [ledger.submit() for _ in range(count)]

    def store(connection: Connection) -> None:
        connection.execute(insert(batches).values(id=batch_id, owner_id=owner_id, name="three", count=count))
        connection.execute(update(jobs).where(jobs.c.id.in_(ids)).values(batch_id=batch_id))
        assert repository.register_batch(connection, batch_id, owner_id, url, SECRET)

    ledger.database.run(store)
    return batch_id, ids


def end(ledger: Ledger, job_id: UUID, error: str | None = None) -> None:
    lease = ledger.database.run(leases.claim, job_id, 1, ledger.worker("cpu"), 60.0)
    assert lease is not None
    if error is None:
        assert ledger.database.run(leases.succeed, [(lease, Success({}))])
    else:
        assert ledger.database.run(leases.fail, lease, Reason.TIMEOUT, error)


def deliveries(ledger: Ledger, job_id: UUID) -> Deliveries:
    deliveries = ledger.database.run(repository.deliveries, job_id)
    assert deliveries is not None
    return deliveries


def settled(ledger: Ledger, job_id: UUID) -> Deliveries:
    """The deliveries of a job once there is nothing more to do."""
    until(
        lambda: deliveries(ledger, job_id).state in (State.DELIVERED, State.GIVEN_UP),
        describe=lambda: deliveries(ledger, job_id),
    )
    return deliveries(ledger, job_id)
