"""`priority: high` has a budget, and waiting raises what a job waits as."""

from collections.abc import Iterator
from uuid import UUID

import httpx
import pytest

from tests.support.api import Api, running_api
from tests.support.ledger import Ledger
from warpfold.app.config import Settings
from warpfold.app.jobs import transitions, workers
from warpfold.app.jobs.allotment import Depth
from warpfold.app.jobs.workers import WorkerInfo
from warpfold.worker.dispatcher import choose

CPU = WorkerInfo("here:cpu", "cpu", "cpu", "here", 1, "0", None)


@pytest.fixture
def strict(settings: Settings) -> Iterator[Api]:
    """An api where two jobs of a user may wait as high in an hour."""
    with running_api(settings.model_copy(update={"max_high_per_hour": 2})) as running:
        yield running


@pytest.fixture
def ledger(strict: Api) -> Ledger:
    return Ledger(strict.database)


def waits_as(http: httpx.Client, job_id: str) -> tuple[str, str | None]:
    job = http.get(f"/v1/jobs/{job_id}").json()
    return job["priority"], job["waits_as"]


def test_high_jobs_beyond_the_budget_of_the_hour_wait_as_normal_ones(strict: Api) -> None:
    http = strict.client()
    mine = [strict.submit(priority="high") for _ in range(4)]
    assert [waits_as(http, job_id) for job_id in mine] == [("high", "high")] * 2 + [("high", "normal")] * 2
    assert waits_as(http, strict.submit("bob", priority="high")) == ("high", "high"), "each has their own"


def test_the_budget_is_of_an_hour_whether_the_jobs_have_ended_or_not(strict: Api, ledger: Ledger) -> None:
    http = strict.client()
    first, _ = strict.submit(priority="high"), strict.submit(priority="high")
    http.post(f"/v1/jobs/{first}/cancel")
    assert waits_as(http, strict.submit(priority="high")) == ("high", "normal")
    ledger.age(UUID(first), 3601)
    assert waits_as(http, strict.submit(priority="high")) == ("high", "high")


@pytest.mark.parametrize(("own", "high"), [(0, 0), (3, 3)])
def test_an_admin_gives_or_takes_the_right(strict: Api, own: int, high: int) -> None:
    set_ = strict.client("root").put("/v1/quotas/ann", json={"high_per_hour": own})
    assert set_.json()["limits"]["high_per_hour"] == own
    http = strict.client()
    mine = [strict.submit(priority="high") for _ in range(4)]
    assert [waits_as(http, job_id)[1] for job_id in mine] == ["high"] * high + ["normal"] * (4 - high)


def test_children_of_a_preset_use_the_budget_and_the_preset_does_not(strict: Api) -> None:
    http = strict.client()
    part = {"kind": "reduce", "source": {"type": "values", "values": [1.0]}}
    children = [{"name": name, "spec": part} for name in ("a", "b", "c")]
    preset = {"kind": "preset", "preset": "p34-reduction", "priority": "high", "children": children}
    made = http.post("/v1/jobs", json=preset)
    assert made.status_code == 202, made.text
    ids = [child["id"] for child in made.json()["children"]]
    assert [waits_as(http, job_id)[1] for job_id in ids] == ["high", "high", "normal"]


def test_what_does_not_wait_waits_as_nothing(strict: Api) -> None:
    job_id = strict.submit()
    strict.claim(job_id)
    assert waits_as(strict.client(), job_id) == ("normal", None)


def test_waiting_raises_what_a_job_waits_as(strict: Api, ledger: Ledger) -> None:
    http = strict.client()
    low, normal, young = strict.submit(priority="low"), strict.submit(), strict.submit()
    ledger.age(UUID(low), 150)
    ledger.age(UUID(normal), 250)
    assert strict.database.run(transitions.raise_waiting, 100.0, 10) == 2
    assert [waits_as(http, one)[1] for one in (low, normal, young)] == ["normal", "high", "normal"]
    ledger.age(UUID(low), 100)
    assert strict.database.run(transitions.raise_waiting, 100.0, 10) == 1
    assert strict.database.run(transitions.raise_waiting, 100.0, 10) == 0
    assert [waits_as(http, one)[1] for one in (low, normal, young)] == ["high", "high", "normal"]


def test_the_oldest_are_raised_first_and_so_many_at_a_time(strict: Api, ledger: Ledger) -> None:
    http = strict.client()
    mine = [strict.submit() for _ in range(3)]
    for job_id in mine:
        ledger.age(UUID(job_id), 1000)
    assert [strict.database.run(transitions.raise_waiting, 100.0, 2) for _ in range(3)] == [2, 1, 0]
    assert [waits_as(http, one)[1] for one in mine] == ["high"] * 3


def test_a_raised_job_has_a_new_etag_and_a_place_further_ahead(strict: Api, ledger: Ledger) -> None:
    http = strict.client()
    before, old = strict.submit(), strict.submit("bob")
    answer = http.get(f"/v1/jobs/{old}")
    assert answer.json()["queue_position"] == 2
    ledger.age(UUID(old), 1000)
    ledger.age(UUID(before), -1000)
    strict.database.run(transitions.raise_waiting, 100.0, 1)
    strict.database.run(transitions.raise_waiting, 100.0, 10)
    again = http.get(f"/v1/jobs/{old}", headers={"If-None-Match": answer.headers["ETag"]})
    assert again.status_code == 200
    assert (again.json()["waits_as"], again.json()["queue_position"]) == ("high", 1)


def test_a_low_job_is_served_though_normal_ones_never_cease(strict: Api, ledger: Ledger) -> None:
    strict.database.run(workers.report, CPU, "idle", None, 600.0)
    low = strict.submit("bob", priority="low")
    ledger.age(UUID(low), 1000)
    served: list[str] = []
    while low not in served:
        assert len(served) < 4
        strict.submit()
        strict.submit()
        strict.database.run(transitions.raise_waiting, 100.0, 10)
        for one in strict.database.step(choose, Depth(1)):
            strict.finish(strict.claim(str(one.job_id)))
            served.append(str(one.job_id))
