import asyncio
import time
from collections.abc import Awaitable, Callable

import pytest

from tests.support.api import Api
from tests.support.window import Window
from warpfold.app.dashboard.shared import KEPT_S, PollCache


@pytest.mark.parametrize("path", ["/live/jobs", "/live/now"])
def test_an_unchanged_part_is_a_304_without_a_body(ann: Window, api: Api, path: str) -> None:
    api.submit()
    time.sleep(KEPT_S)  # until what the tests before have read is forgotten
    tag = ann.get(path).headers["ETag"]
    answer = ann.get(path, headers={"If-None-Match": tag})
    assert (answer.status_code, answer.content) == (304, b"")
    assert answer.headers["ETag"] == tag


def test_a_jobs_part_changes_with_the_job(ann: Window, api: Api) -> None:
    job = api.submit()
    path = f"/live/jobs/{job}"
    tag = ann.get(path).headers["ETag"]
    assert ann.get(path, headers={"If-None-Match": tag}).status_code == 304
    lease = api.claim(job)
    answer = ann.get(path, headers={"If-None-Match": tag})
    assert answer.status_code == 200
    assert "running" in answer.text
    assert "hx-trigger" in answer.text
    api.finish(lease)
    ended = ann.get(path, headers={"If-None-Match": answer.headers["ETag"]})
    assert "correctly rounded" in ended.text
    assert "hx-trigger" not in ended.text, "a job that has ended is not polled for any more"
    assert ended.headers["HX-Trigger-After-Settle"] == "ended"


def test_the_page_and_its_part_have_the_same_tag(ann: Window, api: Api) -> None:
    job = api.submit()
    tag = ann.get(f"/live/jobs/{job}").headers["ETag"]
    assert tag.strip('"') in ann.get(f"/jobs/{job}").text


def test_another_users_part_is_another(ann: Window, window: Callable[[str], Window], api: Api) -> None:
    job = api.submit("ann")
    path = f"/live/jobs/{job}"
    bobs = window("bob").get(path)
    assert bobs.headers["ETag"] != ann.get(path).headers["ETag"]
    assert "Cancel" not in bobs.text
    assert "Cancel" in ann.get(path).text


def test_what_many_ask_for_at_once_is_read_once() -> None:
    async def ask() -> tuple[list[int], int]:
        polls, readings = PollCache(), 0

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
    monkeypatch.setattr("warpfold.app.dashboard.shared.time.monotonic", lambda: now)
    polls = PollCache()

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
    polls = PollCache()

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
    polls = PollCache()

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
    polls = PollCache()

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
