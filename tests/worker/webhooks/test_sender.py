import time
from datetime import timedelta

import pytest
from standardwebhooks import Webhook

from tests.support.deliveries import SECRET, deliveries, end, hooked, hooked_batch, sending, settled
from tests.support.ledger import Ledger
from tests.support.receivers import Behaviour, answer, closed_port, drip, hang, receiver
from tests.support.servers import Servers
from warpfold.app.batches import transitions as batches
from warpfold.app.config import Settings
from warpfold.app.db import BlockingDatabase
from warpfold.app.jobs import transitions, workers
from warpfold.app.jobs.workers import WorkerInfo
from warpfold.app.webhooks import repository
from warpfold.app.webhooks.message import message_id, new_secret
from warpfold.app.webhooks.repository import State

OK = answer(204)


@pytest.fixture
def open_(settings: Settings) -> Settings:
    """Settings of a sender that may call the receivers of tests, and looks often."""
    quick = {"webhook_allow_private": True, "webhook_timeout_s": 60.0, "dispatch_interval_s": 0.05}
    return settings.model_copy(update=quick)


def test_the_end_of_a_job_arrives_signed_and_once(ledger: Ledger, open_: Settings) -> None:
    with receiver(OK) as target, sending(open_):
        job_id = hooked(ledger, target.url())
        time.sleep(0.3)
        assert target.received == []  # it has not ended
        assert deliveries(ledger, job_id).state is State.WAITING
        end(ledger, job_id)
        [received] = target.wait(1)
        settled_delivery = settled(ledger, job_id)
    assert [(attempt.number, attempt.status_code, attempt.error) for attempt in settled_delivery.attempts] == [
        (1, 204, None)
    ]
    assert (settled_delivery.state, settled_delivery.next_attempt_at) == (State.DELIVERED, None)
    message = Webhook(SECRET).verify(received.body, received.headers)
    assert (message["type"], message["data"]["id"]) == ("job.succeeded", str(job_id))
    assert received.headers["webhook-id"] == message_id(job_id)
    assert (received.path, received.headers["content-type"]) == ("/hook?of=me", "application/json")
    assert len(target.received) == 1


def test_a_failed_job_says_why(ledger: Ledger, open_: Settings) -> None:
    with receiver(OK) as target, sending(open_):
        end(ledger, hooked(ledger, target.url()), "It took too long — §")
        [message] = target.wait(1)
    data = Webhook(SECRET).verify(message.body, message.headers)["data"]
    assert (data["status"], data["reason"], data["error"]) == ("failed", "timeout", "It took too long — §")


def test_a_cancelled_job_tells_too(ledger: Ledger, open_: Settings) -> None:
    with receiver(OK) as target, sending(open_):
        ledger.cancel(hooked(ledger, target.url()))
        [message] = target.wait(1)
    assert Webhook(SECRET).verify(message.body, message.headers)["type"] == "job.cancelled"


def test_without_a_secret_of_its_own_the_owners_signs_it(ledger: Ledger, open_: Settings) -> None:
    owners = new_secret()
    ledger.database.run(repository.put_secret, ledger.owner("ada"), owners)
    with receiver(OK) as target, sending(open_):
        end(ledger, hooked(ledger, target.url(), secret=None))
        [message] = target.wait(1)
    Webhook(owners).verify(message.body, message.headers)


@pytest.mark.parametrize("first", [hang, drip, answer(500), answer(302, Location="/elsewhere"), answer(429)])
def test_what_failed_is_tried_again_with_the_same_id_and_bytes(
    ledger: Ledger, open_: Settings, first: Behaviour
) -> None:
    # Long enough for the second answer, where the first never comes.
    impatient = open_.model_copy(update={"webhook_timeout_s": 2.0}) if first in (hang, drip) else open_
    with receiver(first, OK) as target, sending(impatient):
        job_id = hooked(ledger, target.url())
        end(ledger, job_id)
        earlier, two = target.wait(2)
        deliveries = settled(ledger, job_id)
    assert deliveries.state is State.DELIVERED
    assert [attempt.number for attempt in deliveries.attempts] == [1, 2]
    assert deliveries.attempts[0].error is not None
    assert deliveries.attempts[0].finished_at is not None
    assert (earlier.headers["webhook-id"], earlier.body, earlier.path) == (
        two.headers["webhook-id"],
        two.body,
        two.path,
    )
    Webhook(SECRET).verify(two.body, two.headers)


def test_a_redirect_is_not_followed_to_its_target(ledger: Ledger, open_: Settings) -> None:
    with receiver(OK) as target, receiver(answer(307, Location=target.url())) as redirecting, sending(open_, ()):
        job_id = hooked(ledger, redirecting.url())
        end(ledger, job_id)
        deliveries = settled(ledger, job_id)
        assert target.received == []
    assert (deliveries.state, deliveries.attempts[0].status_code) == (State.GIVEN_UP, 307)


def test_after_the_last_attempt_it_is_given_up_and_noted(ledger: Ledger, open_: Settings) -> None:
    with sending(open_):
        job_id = hooked(ledger, f"http://127.0.0.1:{closed_port()}/")
        end(ledger, job_id)
        deliveries = settled(ledger, job_id)
    assert (deliveries.state, len(deliveries.attempts), deliveries.next_attempt_at) == (State.GIVEN_UP, 3, None)
    assert all("cannot be reached" in (attempt.error or "") for attempt in deliveries.attempts)


def test_a_receiver_that_is_gone_is_left_alone(ledger: Ledger, open_: Settings) -> None:
    with receiver(answer(410)) as target, sending(open_):
        job_id = hooked(ledger, target.url())
        end(ledger, job_id)
        assert settled(ledger, job_id).state is State.GIVEN_UP
        assert len(target.received) == 1


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_what_leads_to_a_private_address_is_never_called(ledger: Ledger, open_: Settings, host: str) -> None:
    with receiver(OK) as target, sending(open_.model_copy(update={"webhook_allow_private": False})):
        job_id = hooked(ledger, target.url(host))
        end(ledger, job_id)
        deliveries = settled(ledger, job_id)
        assert target.received == []
    assert (deliveries.state, len(deliveries.attempts)) == (State.GIVEN_UP, 1)
    assert "private address" in (deliveries.attempts[0].error or "")


def test_a_message_that_cannot_be_made_does_not_come_back_for_ever(ledger: Ledger, open_: Settings) -> None:
    with receiver(OK) as target, sending(open_):
        job_id = hooked(ledger, target.url(), secret="whsec_")  # signs nothing
        end(ledger, job_id)
        deliveries = settled(ledger, job_id)
        assert target.received == []
    assert (deliveries.state, len(deliveries.attempts)) == (State.GIVEN_UP, 3)


def test_the_sender_goes_on_after_a_loss_of_postgres(fragile_settings: Settings, servers: Servers) -> None:
    calling = {"webhook_allow_private": True, "dispatch_interval_s": 0.05}
    database = BlockingDatabase(servers.database_url, application="test")
    ledger = Ledger(database)
    with receiver(OK) as target, sending(fragile_settings.model_copy(update=calling)):
        job_id = hooked(ledger, target.url())
        servers.postgres.stop()
        time.sleep(0.3)
        servers.postgres.start()
        database.run_patiently(
            30.0, workers.report, WorkerInfo("h:cpu", "cpu", "cpu", "h", 1, "0", None), "idle", None, 9
        )
        end(ledger, job_id)
        target.wait(1)
    database.close()


def test_one_users_hanging_receiver_leaves_others_their_turns(ledger: Ledger, open_: Settings) -> None:
    with receiver(hang) as stuck, receiver(OK) as target:
        for _ in range(100):
            end(ledger, hooked(ledger, stuck.url(), owner="ada"))
        last = hooked(ledger, target.url(), owner="bob")
        end(ledger, last)
        with sending(open_):
            target.wait(1)
            assert settled(ledger, last).state is State.DELIVERED
        assert len(stuck.received) <= 8


def test_an_attempt_is_claimed_once_and_due_again_if_its_sender_is_lost(
    ledger: Ledger, database: BlockingDatabase
) -> None:
    job_id = hooked(ledger, "http://example.org/")
    assert database.run(repository.claim, [], 60.0) is None
    end(ledger, job_id)
    first = database.run(repository.claim, [], 0.0)  # its time is over at once
    second = database.run(repository.claim, [], 60.0)
    assert first is not None
    assert second is not None
    assert (first.number, second.number) == (1, 2)
    assert database.run(repository.claim, [], 60.0) is None
    database.run(repository.failed, first, 500, "late", 0.0)  # the second goes on
    assert database.run(repository.claim, [], 60.0) is None
    database.run(repository.delivered, second, 200)
    database.run(repository.failed, second, 500, "twice", 0.0)
    assert deliveries(ledger, job_id).state is State.DELIVERED
    assert database.run(repository.claim, [], 60.0) is None


def test_webhooks_go_with_their_jobs(ledger: Ledger, database: BlockingDatabase) -> None:
    job_id = hooked(ledger, "http://example.org/")
    end(ledger, job_id)
    assert database.run(transitions.remove_old, timedelta(seconds=-60)) == 1
    assert database.run(repository.deliveries, job_id) is None


def test_the_end_of_a_batch_arrives_once_with_the_counts_of_its_jobs(ledger: Ledger, open_: Settings) -> None:
    with receiver(answer(500), OK) as target, sending(open_):
        batch_id, jobs = hooked_batch(ledger, target.url(), 3)
        end(ledger, jobs[0])
        end(ledger, jobs[1], "It took too long")
        ledger.database.run(batches.settle, 10)
        assert deliveries(ledger, batch_id).state is State.WAITING
        end(ledger, jobs[2])
        ledger.database.run(batches.settle, 10)
        first, second = target.wait(2)
        settled_delivery = settled(ledger, batch_id)
    assert [(attempt.number, attempt.status_code) for attempt in settled_delivery.attempts] == [(1, 500), (2, 204)]
    assert first.body == second.body
    message = Webhook(SECRET).verify(second.body, second.headers)
    assert message["type"] == "batch.failed"
    data = message["data"]
    assert (data["id"], data["name"], data["status"], data["count"]) == (str(batch_id), "three", "failed", 3)
    assert (data["succeeded"], data["failed"], data["cancelled"]) == (2, 1, 0)
    assert data["finished_at"] == message["timestamp"]
    assert second.headers["webhook-id"] == message_id(batch_id)
    assert len(target.received) == 2
