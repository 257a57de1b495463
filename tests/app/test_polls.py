import asyncio
from collections.abc import Awaitable, Callable

import pytest

from warpfold.app.polls import PollCache

KEPT_S = 1.0


def test_what_many_ask_for_at_once_is_read_once() -> None:
    async def ask() -> tuple[list[int], int]:
        polls, readings = PollCache(KEPT_S), 0

        async def read() -> int:
            nonlocal readings
            readings += 1
            await asyncio.sleep(0)
            return readings

        return await asyncio.gather(*(polls.get("key", read) for _ in range(100))), readings

    answers, readings = asyncio.run(ask())
    assert answers == [1] * 100
    assert readings == 1


def test_what_was_read_is_forgotten_after_a_second(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    monkeypatch.setattr("warpfold.app.polls.time.monotonic", lambda: now)
    polls = PollCache(KEPT_S)

    async def ask(answer: int) -> int:
        async def read() -> int:
            return answer

        return await polls.get("key", read)

    async def story() -> list[int]:
        nonlocal now
        answers = [await ask(1), await ask(2)]
        now += KEPT_S + 0.001
        return [*answers, await ask(3)]

    assert asyncio.run(story()) == [1, 1, 3]


def test_an_answer_that_is_made_anew_is_the_answer_of_those_who_poll() -> None:
    polls = PollCache(KEPT_S)

    def reading(answer: int) -> Callable[[], Awaitable[int]]:
        async def read() -> int:
            await asyncio.sleep(0)
            return answer

        return read

    async def story() -> list[int]:
        earlier = asyncio.create_task(polls.get("key", reading(1)))
        await asyncio.sleep(0)
        return [await polls.renewed("key", reading(2)), await polls.get("key", reading(3)), await earlier]

    assert asyncio.run(story()) == [2, 2, 1]


def test_a_reading_that_failed_is_told_to_those_who_waited_and_made_anew() -> None:
    polls = PollCache(KEPT_S)

    async def fail() -> int:
        await asyncio.sleep(0)
        raise OSError("gone")

    async def work() -> int:
        return 1

    async def story() -> int:
        answers = await asyncio.gather(*(polls.get("key", fail) for _ in range(2)), return_exceptions=True)
        assert [str(answer) for answer in answers] == ["gone", "gone"]
        return await polls.get("key", work)

    assert asyncio.run(story()) == 1


def test_one_who_hangs_up_takes_the_answer_from_nobody() -> None:
    polls = PollCache(KEPT_S)

    async def story() -> int:
        release = asyncio.Event()

        async def read() -> int:
            await release.wait()
            return 1

        leaving = asyncio.create_task(polls.get("key", read))
        staying = asyncio.create_task(polls.get("key", read))
        await asyncio.sleep(0)
        leaving.cancel()
        await asyncio.sleep(0)
        release.set()
        return await staying

    assert asyncio.run(story()) == 1
