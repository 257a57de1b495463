import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace

import pytest
from sqlalchemy import Connection

from tests.support.ledger import Ledger
from warpfold.app.auth.access_tokens import Principal, Role
from warpfold.app.config import Settings
from warpfold.app.http.context import Context
from warpfold.app.jobs import placing, service
from warpfold.app.jobs.estimates import QueueSeen, see
from warpfold.app.main import create_app
from warpfold.app.polls import PollCache


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> list[QueueSeen]:
    """Every look at the queue."""
    taken: list[QueueSeen] = []

    def noted(connection: Connection) -> QueueSeen:
        taken.append(see(connection))
        return taken[-1]

    monkeypatch.setattr(placing, "see", noted)
    return taken


ADMIN = Principal(0, "root", Role.ADMIN)


def tell(settings: Settings, story: Callable[[Context], Awaitable[None]]) -> None:
    """Tell a story in the context of an api that keeps a look for an hour."""

    async def estimated() -> None:
        context = replace(create_app(settings).state.context, queue=PollCache(3600.0))
        try:
            await story(context)
        finally:
            await context.database.close()

    asyncio.run(estimated())


def test_one_look_at_the_queue_serves_all_who_ask_for_a_while(
    settings: Settings, ledger: Ledger, looks: list[QueueSeen]
) -> None:
    first, second = ledger.submit(), ledger.submit()

    async def story(context: Context) -> None:
        stamps = await asyncio.gather(*(service.stamp(context, ADMIN, job_id) for job_id in [first, second] * 5))
        assert [stamp.queue_position for stamp in stamps] == [1, 2] * 5
        third = ledger.submit()
        assert (await service.get(context, ADMIN, third)).queue_position == 3
        [placed] = await placing.placed(context, [ledger.job(second)])
        assert placed.queue_position == 2
        assert list(await placing.owners_turns(context)) == [ledger.job(first).owner]

    tell(settings, story)
    assert len(looks) == 1


def test_who_asks_for_jobs_that_do_not_wait_takes_no_look(
    settings: Settings, ledger: Ledger, looks: list[QueueSeen]
) -> None:
    ended = ledger.submit()
    ledger.cancel(ended)

    async def story(context: Context) -> None:
        assert (await service.stamp(context, ADMIN, ended)).queue_position is None
        assert (await service.get(context, ADMIN, ended)).queue_position is None
        assert (await placing.placed(context, [ledger.job(ended)])) == [ledger.job(ended)]

    tell(settings, story)
    assert looks == []
