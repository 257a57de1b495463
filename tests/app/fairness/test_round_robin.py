import asyncio
from collections.abc import Sequence

from warpfold.app.fairness.round_robin import RoundRobin


async def served(arrivals: Sequence[int], *, cancelled: Sequence[int] = ()) -> list[int]:
    """The users in the order in which they are served; the requests at these places give up."""
    line, order = RoundRobin(), list[int]()

    async def ask(user: int) -> None:
        async with line.turn(user):
            order.append(user)
            await asyncio.sleep(0)

    tasks = [asyncio.create_task(ask(user)) for user in arrivals]
    await asyncio.sleep(0)
    for place in cancelled:
        tasks[place].cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    async with line.turn(9):  # nothing holds the line in the end
        return order


def test_users_take_turns_however_many_requests_one_has_sent() -> None:
    assert asyncio.run(served([1, 1, 1, 1, 2, 3, 2])) == [1, 1, 2, 3, 1, 2, 1]


def test_who_gives_up_holds_up_nobody() -> None:
    assert asyncio.run(served([1, 1, 2, 2], cancelled=[1, 2])) == [1, 2]
    assert asyncio.run(served([1, 2], cancelled=[0])) in ([2], [1, 2])


def test_of_two_places_a_user_has_one_and_long_requests_have_the_second() -> None:
    async def run() -> None:
        lent = False
        line, begun, ends = RoundRobin(2, lambda: lent), list[str](), dict[str, asyncio.Event]()

        async def ask(name: str) -> None:
            ends[name] = asyncio.Event()
            async with line.turn(ord(name[0]), is_long="long" in name):
                begun.append(name)
                await ends[name].wait()

        async def begun_after(*ended: str) -> list[str]:
            for name in ended:
                ends[name].set()
            for _ in range(5):
                await asyncio.sleep(0)
            new = begun.copy()
            begun.clear()
            return new

        tasks = [asyncio.create_task(ask(name)) for name in ("a long", "a", "b long", "b", "c")]
        assert await begun_after() == ["a long", "b"]
        assert line.is_busy_with_others(ord("d"))
        assert not line.is_busy_with_others(ord("a"))
        assert await begun_after("b") == ["c"]
        assert await begun_after("a long") == ["b long"]
        assert await begun_after("c") == ["a"]
        tasks += [asyncio.create_task(ask("d"))]
        assert await begun_after("b long") == []
        assert await begun_after("a") == ["d"]
        lent = True
        tasks += [asyncio.create_task(ask("e"))]
        assert await begun_after() == ["e"]
        await begun_after("d", "e")
        assert all(task.done() for task in tasks)

    asyncio.run(run())
