"""A user who submits without end, at high priority or long jobs, delays others by a few jobs and no more."""

from pathlib import Path
from uuid import UUID

import pytest

from tests.support.api import running_api
from tests.support.figures import Figures
from tests.support.fleet import DISPATCHER, fleet
from tests.support.gated_service import QUICK, N, gated_service
from tests.support.ledger import Ledger
from tests.support.waiting import until
from warpfold.app.auth.access_tokens import create_token
from warpfold.app.config import Settings

LOUD = 60
HIGH_AN_HOUR = 3
SMALL = {"type": "generate", "distribution": "arange", "n": 7, "dtype": "float64"}
IN_HAND = 4
"""Jobs of the loud user that the slot may hold already when the others come: one runs, and a few wait at the slot."""

ACTOR = ("tests.support.workers.serve_actor", "cpu")
LONG, LONG_S = 100, 0.5


def test_ten_users_are_served_in_turns_at_every_priority(
    settings: Settings, log: Path, ledger: Ledger, figures: Figures
) -> None:
    limited = settings.model_copy(update={"max_high_per_hour": HIGH_AN_HOUR})
    with gated_service(limited, log) as (_, gates), running_api(limited) as api:
        for priority in ("high", "normal", "low"):
            gates.close(N)
            blocking = gates.submit(ledger, N)
            ledger.until(blocking, "status", "running")
            loud, *others = (f"{priority} user {number}" for number in range(10))
            for name in (loud, *others):
                api.tokens[name] = api.database.run(create_token, name)
            many = [UUID(api.submit(loud, priority=priority, source=SMALL)) for _ in range(LOUD)]
            quiet = [UUID(api.submit(name, priority=priority, source=SMALL)) for name in others]
            gates.open(N)
            with figures.timed(f"nine small jobs beside {LOUD} of one user at {priority} priority"):
                ledger.wait(quiet, 120)
            ledger.wait(many, 120)
            last = max(ledger.column(job, "started_at") for job in quiet)
            before = sum(ledger.column(job, "started_at") < last for job in many)
            allowed = IN_HAND + HIGH_AN_HOUR + len(others)
            assert before <= allowed, f"{before} of {LOUD} jobs of one user went before others at {priority} priority"


def test_who_asks_for_high_priority_beyond_the_budget_takes_turns_with_normal_jobs(
    settings: Settings, log: Path, ledger: Ledger, figures: Figures
) -> None:
    limited = settings.model_copy(update={"max_high_per_hour": HIGH_AN_HOUR})
    with gated_service(limited, log) as (_, gates), running_api(limited) as api:
        blocking = gates.submit(ledger, N)
        ledger.until(blocking, "status", "running")
        loud = [UUID(api.submit("ann", priority="high", source=SMALL)) for _ in range(LOUD)]
        small = UUID(api.submit("bob", priority="normal", source=SMALL))
        gates.open(N)
        with figures.timed(f"a small normal job behind {LOUD} high jobs of another user"):
            ledger.wait([small], 120)
        ledger.wait(loud, 120)
        started = ledger.column(small, "started_at")
        before = sum(ledger.column(job, "started_at") < started for job in loud)
        assert before <= IN_HAND + HIGH_AN_HOUR + 1, f"{before} of {LOUD} high jobs went before a normal one"


@pytest.mark.parametrize("small", [True, False])
def test_short_jobs_beside_long_ones_of_another_user_get_half_of_the_time_of_the_slot(
    settings: Settings, log: Path, ledger: Ledger, figures: Figures, small: bool
) -> None:
    number = 400 if small else 60
    quick = settings.model_copy(update=QUICK)
    with fleet(quick, log, worker=ACTOR, dispatcher=DISPATCHER) as service:
        service.wait_until_logged("child ready")
        service.wait_until_logged('"event": "leading"')
        long = [ledger.submit(f"sleep {LONG_S}", owner="ann") for _ in range(LONG)]
        until(lambda: ledger.column(long[0], "started_at"))
        short = [ledger.submit("sleep 0.01", owner="bob", small=small) for _ in range(number)]
        kind = "small" if small else "short"
        with figures.timed(f"{number} {kind} jobs of 10 ms beside {LONG} of {LONG_S} s of another user"):
            ledger.wait(short, 100)
        first, last = ledger.column(long[0], "started_at"), max(ledger.columns(short, "finished_at"))
        began = [at for at in ledger.columns(long, "started_at") if at is not None and at < last]
        part = len(began) * LONG_S / (last - first).total_seconds()
        figures.note(f"of the slot's time for the long jobs beside {number} {kind} ones, in hundredths", 100 * part)
        for job in long:
            ledger.cancel(job)
        assert len(began) < LONG, "the other user has waited all the time"
        assert part < 0.7, "turn by turn it would be nearly all"
