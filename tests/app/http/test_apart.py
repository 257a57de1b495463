import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from warpfold.app.http import apart
from warpfold.app.http.apart import Apart


class Process:
    """Stands for a process apart: it takes down what it is called with, and ends a call when it is told to."""

    def __init__(self) -> None:
        self.is_warm = False
        self.calls = list[object]()
        self.go_on = asyncio.Event()

    async def call(self, function: Callable[..., Any], *args: Any) -> None:
        self.calls.append(args[1][0] if args else None)
        await self.go_on.wait()
        self.is_warm = True


def test_a_cold_process_is_warmed_up_when_users_wait_and_makes_their_calls_when_it_is_warm(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(apart, "HelperProcess", Process)

    async def settled() -> None:
        for _ in range(5):
            await asyncio.sleep(0)

    async def run() -> None:
        both = Apart(processes=2)
        first, second = both._helpers
        assert isinstance(first, Process)
        assert isinstance(second, Process)
        tasks = [asyncio.create_task(both.call(user, print, user)) for user in (1, 1)]
        await settled()
        assert (first.calls, second.calls) == ([1], []), "a user who waits for nobody else starts no second process"
        tasks += [asyncio.create_task(both.call(2, print, 2))]
        await settled()
        assert (first.calls, second.calls) == ([1], [None]), "the second user waits while the second process starts"
        second.go_on.set()
        await settled()
        tasks += [asyncio.create_task(both.call(3, print, 3))]
        await settled()
        assert second.calls == [None, 3, 2]
        first.go_on.set()
        await asyncio.gather(*tasks)

    asyncio.run(run())
