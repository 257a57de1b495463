import asyncio
from types import SimpleNamespace

import pytest

from warpfold.app.fairness.turns import Turns, give_up_turn, in_turn


async def flooded(turns: Turns, count: int, done: asyncio.Event) -> list["asyncio.Task[None]"]:
    """`count` requests of one user, each of which works until `done`."""

    async def work() -> None:
        async with turns.turn("many"):
            await done.wait()

    tasks = [asyncio.create_task(work()) for _ in range(count)]
    for _ in range(3):
        await asyncio.sleep(0)
    return tasks


def test_who_is_alone_has_many_turns_and_among_others_few() -> None:
    async def play() -> None:
        turns, done = Turns(), asyncio.Event()
        async with turns.turn("other"):
            tasks = await flooded(turns, 40, done)
            assert turns.waiting() == 38
            # Another one is not behind the 38.
            async with asyncio.timeout(10), turns.turn("other"):
                pass
        done.set()
        await asyncio.gather(*tasks)
        assert turns.waiting() == 0
        assert not turns._lines

    asyncio.run(play())


def test_who_comes_while_a_flood_is_worked_on_is_not_alone_however_old_the_flood_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now_s = 100.0
    clock = SimpleNamespace(monotonic=lambda: now_s)
    monkeypatch.setattr("warpfold.app.fairness.turns.time", clock)

    async def play() -> None:
        nonlocal now_s
        turns, done = Turns(), asyncio.Event()
        tasks = await flooded(turns, 40, done)
        assert turns.waiting() == 8
        now_s = 105.0
        async with turns.turn("other"):
            tasks[0].cancel()
            await asyncio.sleep(0)
            assert turns.waiting() == 8, "the place goes to nobody: 31 are worked on, and two may be"
        done.set()
        await asyncio.gather(*tasks[1:])
        assert not turns._lines

    asyncio.run(play())


def test_a_turn_that_is_given_up_goes_to_the_next() -> None:
    async def play() -> None:
        turns, done = Turns(), asyncio.Event()
        turn = turns.turn("many")
        async with turns.turn("other"), turn:
            with in_turn(turn):
                tasks = await flooded(turns, 3, done)
                before = turns.waiting()
                give_up_turn()
                give_up_turn()
                assert (before, turns.waiting()) == (2, 1)
            done.set()
            await asyncio.gather(*tasks)
        assert not turns._lines

    asyncio.run(play())


def test_who_hangs_up_while_waiting_leaves_the_line() -> None:
    async def play() -> None:
        turns, done = Turns(), asyncio.Event()
        async with turns.turn("other"):
            tasks = await flooded(turns, 5, done)
            for task in tasks[2:]:
                task.cancel()
            await asyncio.gather(*tasks[2:], return_exceptions=True)
            assert turns.waiting() == 0
        done.set()
        await asyncio.gather(*tasks[:2])
        assert not turns._lines

    asyncio.run(play())
