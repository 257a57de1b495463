import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import httpx
import pytest

from tests.support.api import Api
from tests.support.sse import Sent, events
from warpfold.app.jobs import leases
from warpfold.app.jobs.events import KEEP_ALIVE_S


@contextmanager
def stream(api: Api, job_id: str, last: int | None = None) -> Iterator[Iterator[Sent]]:
    headers = {} if last is None else {"Last-Event-ID": str(last)}
    with api.client().stream("GET", f"/v1/jobs/{job_id}/events", headers=headers) as response:
        assert response.status_code == 200
        assert response.headers["Content-Type"].startswith("text/event-stream")
        yield events(response)


def finished(api: Api) -> str:
    job_id = api.submit()
    lease = api.claim(job_id)
    api.database.run(leases.note_progress, lease, 1, 3, "elements")
    api.finish(lease)
    return job_id


def test_an_ended_job_gives_its_whole_history_and_the_stream_ends(api: Api) -> None:
    with stream(api, finished(api)) as sent:
        history = list(sent)
    assert [event.event for event in history] == ["submitted", "started", "succeeded"]
    assert [event.id for event in history] == [1, 2, 4]
    assert history[1].data["data"] == {"worker": "gpu1:cpu", "attempt": 1}


def test_a_history_of_any_length_is_given_whole(api: Api) -> None:
    job_id = api.submit()
    with api.database._engine.begin() as connection:
        connection.exec_driver_sql(
            "insert into job_events (job_id, seq, type, data) "
            "select id, number, 'requeued', '{}' from jobs, generate_series(2, 1500) as number"
        )
        connection.exec_driver_sql("update jobs set version = 1500")
    api.finish(api.claim(job_id))
    with stream(api, job_id) as sent:
        assert [event.id for event in sent] == list(range(1, 1503))


@pytest.mark.usefixtures("without_timer")
def test_events_come_as_they_happen(api: Api) -> None:
    job_id = api.submit()
    with stream(api, job_id) as sent:
        assert next(sent).event == "submitted"
        started = time.monotonic()
        lease = api.claim(job_id)
        assert next(sent).event == "started"
        api.database.run(leases.note_progress, lease, 1, 3, "elements")
        progress = next(sent)
        assert (progress.event, progress.data) == ("progress", {"done": 1, "total": 3, "unit": "elements"})
        api.finish(lease)
        assert next(sent).event == "succeeded"
        assert time.monotonic() - started < 60
        assert list(sent) == []


def test_numbers_grow_and_progress_has_one_too(api: Api) -> None:
    job_id = api.submit()
    with stream(api, job_id) as sent:
        first = next(sent)
        lease = api.claim(job_id)
        rest = [next(sent)]
        api.database.run(leases.note_progress, lease, 1, 3, "elements")
        rest.append(next(sent))
        api.finish(lease)
        rest += list(sent)
    numbers = [first.id, *(event.id for event in rest)]
    assert numbers == [1, 2, 3, 4]


def test_a_reconnection_gets_what_came_after_the_last_event_it_saw(api: Api) -> None:
    job_id = finished(api)
    with stream(api, job_id, last=1) as sent:
        assert [event.event for event in sent] == ["started", "succeeded"]
    with stream(api, job_id, last=3) as sent:
        assert [event.event for event in sent] == ["succeeded"]


def test_a_reconnection_after_the_end_is_told_to_stop(api: Api, http: httpx.Client) -> None:
    job_id = finished(api)
    response = http.get(f"/v1/jobs/{job_id}/events", headers={"Last-Event-ID": "4"})
    assert (response.status_code, response.content) == (204, b"")


@pytest.mark.parametrize("last", ["x", "-1", str(2**40)])
def test_an_impossible_last_event_id_is_422(api: Api, http: httpx.Client, last: str) -> None:
    job_id = api.submit()
    assert http.get(f"/v1/jobs/{job_id}/events", headers={"Last-Event-ID": last}).status_code == 422


def test_a_requeued_job_goes_on_in_the_same_stream(api: Api) -> None:
    job_id = api.submit()
    with stream(api, job_id) as sent:
        lease = api.claim(job_id)
        api.database.run(leases.put_back, [(lease, ())], "the worker is stopping")
        api.finish(api.claim(job_id, attempt=2))
        assert [event.event for event in sent] == ["submitted", "started", "requeued", "started", "succeeded"]


def test_a_cancel_request_is_an_event(api: Api, http: httpx.Client) -> None:
    job_id = api.submit()
    lease = api.claim(job_id)
    with stream(api, job_id) as sent:
        assert [next(sent).event, next(sent).event] == ["submitted", "started"]
        http.post(f"/v1/jobs/{job_id}/cancel")
        assert next(sent).event == "cancel_requested"
        api.database.run(leases.cancelled, lease)
        assert [event.event for event in sent] == ["cancelled"]


def test_a_quiet_stream_is_kept_alive_by_comments(settings: object, api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("warpfold.app.jobs.endpoints.KEEP_ALIVE_S", 1)
    assert KEEP_ALIVE_S == 15
    job_id = api.submit()
    with api.client().stream("GET", f"/v1/jobs/{job_id}/events") as response:
        comment = next(line for line in response.iter_lines() if line.startswith(":"))
    assert "ping" in comment


def test_twenty_streams_of_one_job_all_end_with_it(api: Api) -> None:
    job_id = api.submit()
    last: list[str] = []

    def follow() -> None:
        with stream(api, job_id) as sent:
            last.append([event.event for event in sent][-1])

    threads = [threading.Thread(target=follow) for _ in range(20)]
    for thread in threads:
        thread.start()
    api.until_watched(job_id, by=20)
    api.finish(api.claim(job_id))
    for thread in threads:
        thread.join()
    assert last == ["succeeded"] * 20


def test_an_open_stream_does_not_keep_the_server_from_stopping(own_api: Api) -> None:
    job_id = own_api.submit()
    response = own_api.client().send(own_api.client().build_request("GET", f"/v1/jobs/{job_id}/events"), stream=True)
    assert response.status_code == 200
    # The fixture's end stops the server, and fails if that takes long.
