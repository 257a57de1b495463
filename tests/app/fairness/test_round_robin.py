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
