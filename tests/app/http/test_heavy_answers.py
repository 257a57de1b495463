"""Large answers hold places, which are free again however the answer ends."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from warpfold.app.http.errors import TooMany
from warpfold.app.http.heavy_answers import OF_ONE_USER, HeavyAnswers

TEXT = "text/plain"


async def pieces(fault: Exception | None = None) -> AsyncIterator[bytes]:
    if fault is not None:
        raise fault
    yield b"x"


async def places_left(heavy: HeavyAnswers) -> int:
    """How many more answers a user may have."""
    kept = []
    try:
        while True:
            kept.append(await heavy.answer(1, pieces(), TEXT))
    except TooMany:
        return len(kept)


def test_an_answer_that_nobody_sends_or_that_fails_at_once_frees_its_place() -> None:
    async def answers(heavy: HeavyAnswers) -> list[int]:
        left = [await places_left(heavy)]
        for _ in range(OF_ONE_USER):
            with pytest.raises(LookupError):
                await heavy.answer(1, pieces(LookupError()), TEXT)
        left.append(await places_left(heavy))
        kept = await heavy.answer(1, pieces(), TEXT)
        left.append(await places_left(heavy))
        assert kept.status_code == 200
        return left

    heavy = HeavyAnswers()
    try:
        assert asyncio.run(answers(heavy)) == [OF_ONE_USER, OF_ONE_USER, OF_ONE_USER - 1]
    finally:
        heavy.close()


def test_an_answer_takes_the_place_that_was_kept_for_it() -> None:
    async def answers(heavy: HeavyAnswers) -> None:
        async with heavy.place(1), heavy.place(1):
            with pytest.raises(TooMany):
                async with heavy.place(1):
                    pass
            kept = await heavy.answer(1, pieces(), TEXT)
            with pytest.raises(TooMany):
                await heavy.answer(1, pieces(), TEXT)
        del kept
        assert await places_left(heavy) == OF_ONE_USER

    heavy = HeavyAnswers()
    try:
        asyncio.run(answers(heavy))
    finally:
        heavy.close()
