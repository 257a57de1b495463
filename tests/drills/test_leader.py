"""A leader that is stopped, not dead, is replaced; and when it wakes up, it leads no more."""

import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path

import httpx
import pytest

from tests.support.api import served
from tests.support.figures import Figures
from tests.support.fleet import DISPATCHER, Fleet, fleet
from tests.support.ledger import Ledger
from warpfold.app.config import Settings
from warpfold.contract.states import Status

LEAD_S = 2.0
QUICK = {"lead_s": LEAD_S, "dispatch_interval_s": 0.1, "heartbeat_s": 0.1}
WORKER = ("tests.support.workers.serve_actor", "cpu")


@pytest.fixture
def service(settings: Settings, log: Path) -> Iterator[Fleet]:
    """A worker, a dispatcher that leads, and one that stands by."""
    quick = settings.model_copy(update=QUICK)
    with ExitStack() as stack:
        first = stack.enter_context(fleet(quick, log, worker=WORKER, first=DISPATCHER))
        first.wait_until_logged('"event": "leading"')
        second = stack.enter_context(fleet(quick, log, second=DISPATCHER))
        second.wait_until_logged("standing by")
        first.wait_until_logged("child ready")
        yield first


def succeeded(ledger: Ledger) -> None:
    """A job, from its submission to its end."""
    job_id = ledger.submit()
    ledger.wait([job_id], 60)
    assert ledger.job(job_id).status is Status.SUCCEEDED
    assert ledger.history(job_id) == ["submitted", "started", "succeeded"]


def test_a_hung_leader_is_replaced_and_wakes_up_as_one_of_those_who_stand_by(
    service: Fleet, ledger: Ledger, figures: Figures
) -> None:
    succeeded(ledger)
    service.stop("first")
    with figures.timed(f"stopped leader, lead of {LEAD_S:g} s: from a submission to the end of the job"):
        succeeded(ledger)
    service.wait_until_logged('"event": "leading"', times=2)
    service.wake("first")
    service.wait_until_logged("the lead", times=1)
    service.wait_until_logged("standing by", times=2)
    for _ in range(5):
        succeeded(ledger)
    assert service.deaths == {}


def test_where_nobody_takes_over_the_api_says_that_nobody_leads(settings: Settings, log: Path, ledger: Ledger) -> None:
    quick = settings.model_copy(update=QUICK)
    with fleet(quick, log, worker=WORKER, alone=DISPATCHER) as service, served(quick) as url:
        until(url, 200, {"dispatcher": "leads"})
        service.stop("alone")
        until(url, 503, {"dispatcher": "none leads"})
        service.wake("alone")
        until(url, 200, {"dispatcher": "leads"})
        succeeded(ledger)


def until(url: str, status: int, checks: Mapping[str, str]) -> None:
    """Until `/readyz` answers so."""
    give_up = time.monotonic() + 120
    while True:
        answer = httpx.get(f"{url}/readyz")
        body = answer.json()
        if answer.status_code == status and checks.items() <= body.get("checks", body).items():
            return
        assert time.monotonic() < give_up, body
        time.sleep(0.02)
