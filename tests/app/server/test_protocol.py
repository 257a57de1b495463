import io
import re
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack

import httpx
import numpy as np
import pytest

from tests.support.api import Api, running_api
from tests.support.raw_http import Answer, answer, connected, exchange, hung_up, sent
from tests.support.waiting import until
from warpfold.app.config import Settings
from warpfold.app.http.errors import Problem
from warpfold.app.server import protocol

HEALTH = b"GET /healthz HTTP/1.1\r\nHost: here\r\n"
A_LOT = 8 << 20


@pytest.fixture
def hasty(settings: Settings) -> Iterator[Api]:
    """An api that waits for nobody."""
    update = {"head_timeout_s": 0.5, "body_timeout_s": 0.5, "read_timeout_s": 1.0}
    with running_api(settings.model_copy(update=update)) as running:
        yield running


def problem(received: Answer | None) -> Problem:
    assert received is not None
    assert received.headers["content-type"] == "application/problem+json"
    assert received.headers["connection"] == "close"
    refusal = Problem.model_validate_json(received.body)
    assert refusal.status == received.status
    return refusal


@pytest.mark.parametrize(
    ("begin", "again"),
    [
        pytest.param(HEALTH, b"a: b\r\n", id="lines"),
        pytest.param(HEALTH, b"a: " + b"b" * 7000 + b"\r\n", id="bytes"),
        pytest.param(HEALTH + b"a: ", b"b" * 1000, id="a line"),
        pytest.param(HEALTH, b"a" * 1000, id="a name"),
        pytest.param(
            b"PUT /healthz HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n", b"a: b\r\n", id="trailers"
        ),
        pytest.param(
            b"PUT /v1/datasets HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1;", b"a" * 999, id="chunk"
        ),
    ],
)
def test_a_head_without_end_is_refused_before_it_is_kept(api: Api, begin: bytes, again: bytes) -> None:
    with connected(api.url) as link:
        link.sendall(begin)
        sent(link, again * 50, A_LOT)
        received = answer(link)
        assert received is not None
        # An answer that was under way already ends first.
        assert received.status in (431, 401, 405)
        assert hung_up(link)


def test_a_head_without_end_is_431_and_says_what_is_allowed(api: Api) -> None:
    with connected(api.url) as link:
        sent(link, HEALTH + b"a: b\r\n" * 200)
        assert "lines" in problem(answer(link)).detail


def test_a_target_without_end_is_414(api: Api) -> None:
    assert problem(exchange(api.url, b"GET /" + b"a" * 20_000)).status == 414


def test_as_much_as_is_allowed_is_taken(api: Api) -> None:
    lines = b"".join(b"x-%d: %b\r\n" % (index, b"v" * 300) for index in range(protocol.MOST_LINES - 1))
    received = exchange(api.url, HEALTH + lines + b"\r\n")
    assert received is not None
    assert received.status == 200


@pytest.mark.parametrize(
    "request_",
    [
        b"GET /healthz HTTP/1.1\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n",
        b"GET /healthz HTTP/1.0\r\nHost: a\r\nHost: b\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\nHost: a/b\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\nHost: a\r\nno colon\r\n\r\n",
        b"GET /healthz HTTP/9.9\r\nHost: a\r\n\r\n",
        b"\x16\x03\x01\x02\x00",
        b"GET /healthz HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
        b"GET /\xff HTTP/1.1\r\nHost: a\r\n\r\n",
        b"POST /v1/jobs HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\nabc",
    ],
)
def test_what_cannot_be_read_is_a_400_problem(api: Api, request_: bytes) -> None:
    assert problem(exchange(api.url, request_)).status == 400


@pytest.mark.parametrize(
    ("request_", "named"),
    [
        (b"GET /healthz HTTP/2.0\r\nHost: a\r\n\r\n", "is in HTTP/2.0"),
        (b"GET /healthz HTTP/0.9\r\nHost: a\r\n\r\n", "names no version of HTTP"),
        (b"GET /healthz\r\nHost: a\r\n\r\n", "names no version of HTTP"),
        (b"GET /healthz\r\n\r\n", "names no version of HTTP"),
    ],
)
def test_another_version_of_http_is_a_505_problem(api: Api, request_: bytes, named: str) -> None:
    refused = problem(exchange(api.url, request_))
    assert refused.status == 505
    assert named in refused.detail


def test_before_hosts_had_names_a_request_had_none(api: Api) -> None:
    received = exchange(api.url, b"GET /healthz HTTP/1.0\r\n\r\n")
    assert received is not None
    assert received.status == 200


def test_the_server_as_a_whole_says_which_methods_it_knows(api: Api) -> None:
    received = exchange(api.url, b"OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n")
    assert received is not None
    assert (received.status, "POST" in received.headers["allow"]) == (204, True)


def test_what_is_malformed_after_a_good_request_does_not_cut_its_answer(api: Api) -> None:
    with connected(api.url) as link:
        link.sendall(HEALTH + b"\r\n" + b"not HTTP\r\n\r\n")
        first = answer(link)
        assert first is not None
        assert (first.status, first.body) == (200, b'{"status":"ok"}')
        assert hung_up(link)


def test_a_chunk_that_is_none_ends_the_request(api: Api) -> None:
    token = api.tokens["ann"].encode()
    head = b"POST /v1/jobs HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer " + token
    with connected(api.url) as link:
        link.sendall(head + b"\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n")
        time.sleep(0.2)  # the request has begun
        link.sendall(b"zz\r\n")
        assert problem(answer(link)).status == 400


def test_requests_may_be_sent_ahead_but_not_without_end(api: Api) -> None:
    with connected(api.url) as link:
        link.sendall((HEALTH + b"\r\n") * 20)
        came = b""
        while came.count(b'{"status":"ok"}') < 20:
            came += link.recv(65536)
        sent(link, (HEALTH + b"\r\n") * 5000)
        while piece := link.recv(65536):
            came += piece
        assert 20 < came.count(b'{"status":"ok"}') < 200


def test_half_a_head_is_408_after_a_while(hasty: Api) -> None:
    with connected(hasty.url) as link:
        link.sendall(HEALTH)
        assert problem(answer(link)).status == 408


def test_a_connection_on_which_nothing_is_said_is_closed(hasty: Api) -> None:
    with connected(hasty.url) as link:
        assert hung_up(link)


def test_a_head_that_trickles_is_ended_all_the_same(hasty: Api) -> None:
    with connected(hasty.url) as link:
        link.settimeout(0.05)
        link.sendall(HEALTH)
        give_up = time.monotonic() + 30
        while True:
            assert time.monotonic() < give_up
            sent(link, b"a")
            try:
                came = link.recv(100)
            except TimeoutError:
                continue
            assert came.startswith(b"HTTP/1.1 408") or not came
            return


@pytest.mark.parametrize("trickle", [False, True])
def test_a_body_that_does_not_come_is_408(hasty: Api, trickle: bool) -> None:
    head = b"POST /v1/jobs HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer " + hasty.tokens["ann"].encode()
    with connected(hasty.url) as link:
        link.sendall(head + b"\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n{")
        link.settimeout(0.1)
        give_up = time.monotonic() + 30
        while True:
            assert time.monotonic() < give_up
            try:
                received = answer(link)
            except TimeoutError:
                if trickle:
                    sent(link, b" ")
                continue
            assert problem(received).status == 408
            return


def test_a_held_request_is_not_too_slow(hasty: Api) -> None:
    job = hasty.submit()
    assert hasty.client().get(f"/v1/jobs/{job}", headers={"Prefer": "wait=3"}).status_code == 200


def test_a_client_that_reads_nothing_is_left(hasty: Api) -> None:
    asked = b"GET /openapi.json HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer " + hasty.tokens["ann"].encode()
    ended = 'warpfold_http_connections_ended_total{reason="answer_not_read"} 1.0'
    with connected(hasty.url) as link:
        link.sendall((asked + b"\r\n\r\n") * 60)  # more than the buffers on both sides hold
        until(lambda: ended in hasty.client().get("/metrics").text)


def test_connections_of_one_address_are_limited_and_others_served(settings: Settings) -> None:
    with running_api(settings.model_copy(update={"max_connections_per_address": 4})) as api:
        links = []
        try:
            for _ in range(12):
                entered = connected(api.url, "127.0.0.9")
                links.append((entered, entered.__enter__()))
                links[-1][1].sendall(HEALTH)
            assert httpx.get(f"{api.url}/healthz", timeout=60).status_code == 200
            # Those that only wait make room: the latest of the address are served.
            links[-1][1].sendall(b"\r\n")
            received = answer(links[-1][1])
            assert received is not None
            assert received.status == 200
            assert hung_up(links[0][1])
        finally:
            for entered, _ in links:
                entered.__exit__(None, None, None)


def test_who_keeps_all_connections_busy_is_told_so(settings: Settings) -> None:
    with running_api(settings.model_copy(update={"max_connections_per_address": 2})) as api:
        job = api.submit()
        held = b"GET /v1/jobs/%b HTTP/1.1\r\nHost: a\r\nPrefer: wait=30\r\nAuthorization: Bearer %b\r\n\r\n"
        with connected(api.url, "127.0.0.9") as first, connected(api.url, "127.0.0.9") as second:
            for link in (first, second):
                link.sendall(held % (job.encode(), api.tokens["ann"].encode()))
            api.until_watched(job, by=2)
            with connected(api.url, "127.0.0.9") as three:
                assert problem(answer(three)).status == 429
        assert 'reason="too_many_of_one_address"} 1.0' in api.client().get("/metrics").text


def test_health_is_asked_when_every_connection_is_busy(settings: Settings) -> None:
    with running_api(settings.model_copy(update={"max_connections": 16})) as api:
        job = api.submit()
        held = b"GET /v1/jobs/%b HTTP/1.1\r\nHost: a\r\nPrefer: wait=30\r\nAuthorization: Bearer %b\r\n\r\n"
        api.close_clients()
        with ExitStack() as links:
            for number in range(1, 17):
                link = links.enter_context(connected(api.url))
                link.sendall(held % (job.encode(), api.tokens["ann"].encode()))
                api.until_watched(job, by=number)  # a connection that waits for its request may be closed to make room
            assert httpx.get(f"{api.url}/healthz").status_code == 200
            refused = httpx.get(f"{api.url}/v1/jobs")
            assert (refused.status_code, "Retry-After" in refused.headers) == (503, True)


def npy(mebibytes: int) -> bytes:
    file = io.BytesIO()
    np.save(file, np.zeros(mebibytes << 20, np.uint8))
    return file.getvalue()


@pytest.fixture
def uploading(api: Api) -> Iterator[Api]:
    """The api, which forgets afterwards what was uploaded."""
    yield api
    http = api.client("ann")
    for dataset in http.get("/v1/datasets", params={"owner": "ann"}).json()["items"]:
        http.delete(f"/v1/datasets/{dataset['id']}")


def statuses(link: socket.socket, count: int) -> list[bytes]:
    """Of so many answers, which may come in one packet."""
    came = b""
    while len(statuses := re.findall(rb"HTTP/1.1 (\d+)", came)) < count:
        came += link.recv(65536)
    return statuses


def upload(api: Api, body: bytes, *headers: str) -> bytes:
    lines = ["POST /v1/datasets HTTP/1.1", "Host: a", f"Authorization: Bearer {api.tokens['ann']}"]
    return "\r\n".join([*lines, f"Content-Length: {len(body)}", *headers, "", ""]).encode() + body


@pytest.mark.parametrize("split", [0, 100, 70_000, 3 << 20])
def test_a_connection_goes_on_behind_a_body_that_a_thread_read(uploading: Api, split: int) -> None:
    """However the body, and the request behind it, are cut into packets."""
    first = upload(uploading, npy(2))
    both = first + HEALTH + b"\r\n"
    with connected(uploading.url) as link:
        link.sendall(both[:split])
        link.sendall(both[split:])
        assert statuses(link, 2) == [b"201", b"200"]
        link.sendall(first)
        assert statuses(link, 1) == [b"200"]
        link.sendall(HEALTH + b"\r\n")
        assert statuses(link, 1) == [b"200"]


def test_a_connection_goes_on_behind_a_body_that_was_refused_before_its_end(uploading: Api) -> None:
    with connected(uploading.url) as link:
        link.sendall(upload(uploading, bytes(3 << 20)) + HEALTH + b"\r\n")
        assert statuses(link, 2) == [b"422", b"200"]


def test_a_sender_who_waits_for_100_continue_gets_it_before_a_thread_reads(uploading: Api) -> None:
    head, _, body = upload(uploading, npy(2), "Expect: 100-continue").partition(b"\r\n\r\n")
    with connected(uploading.url) as link:
        link.sendall(head + b"\r\n\r\n")
        assert link.recv(100) == b"HTTP/1.1 100 Continue\r\n\r\n"
        link.sendall(body)
        assert statuses(link, 1) == [b"201"]


def test_a_body_that_a_thread_reads_may_not_pause(hasty: Api) -> None:
    with connected(hasty.url) as link:
        link.sendall(upload(hasty, npy(3))[: 2 << 20])
        assert problem(answer(link)).status == 408
        assert hung_up(link)


def test_only_so_many_threads_read_bodies_and_the_rest_comes_through_the_loop(uploading: Api) -> None:
    body = upload(uploading, npy(2))
    with ExitStack() as links:
        wires = [links.enter_context(connected(uploading.url)) for _ in range(20)]
        for wire in wires:
            wire.sendall(body[:-100])
        for wire in wires:
            wire.sendall(body[-100:])
            assert statuses(wire, 1)[0] in (b"200", b"201")
