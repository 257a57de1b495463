"""A user who submits without end, at high priority, delays nine others by a few jobs and no more."""

from pathlib import Path
from uuid import UUID

from tests.support.api import running_api
from tests.support.figures import Figures
from tests.support.gated_service import N, gated_service
from tests.support.ledger import Ledger
from warpfold.app.auth.access_tokens import create_token
from warpfold.app.config import Settings

LOUD = 60
HIGH_AN_HOUR = 3
SMALL = {"type": "generate", "distribution": "arange", "n": 7, "dtype": "float64"}
IN_HAND = 4
"""Jobs of the loud user that the slot may hold already when the others come: one runs, and a few wait at the slot."""


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
