"""One user's heavy answers, beside the others: who reads none of them, and who asks for many."""

import socket
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from typing import Any
from urllib.parse import urlsplit
from uuid import uuid4

import numpy as np
import pytest

from tests.support.api import Api, running_api
from tests.support.artefacts import keep, written
from tests.support.waiting import until
from warpfold.app.auth.access_tokens import create_token
from warpfold.app.http.heavy_answers import IN_ALL, OF_ONE_USER
from warpfold.contract.kinds.groupby import GroupbyResult

ROWS = 10_000
STORED = np.arange(400_000, dtype=np.float64)
"""Its CSV is larger than what the buffers of a connection hold."""


@pytest.fixture
def heavy(own_api: Api) -> Api:
    return own_api


def artefact_of(api: Api, values: Any = STORED) -> str:
    """The path of a stored result of ann as CSV."""
    job_id = api.submit("ann")
    lease = api.claim(job_id)
    keep(api, lease, written(api, lease, values))
    return f"/v1/jobs/{job_id}/artefact?format=csv"


def table_of(api: Api) -> str:
    """The path of a table of groups as CSV, whose JSON stands in the job."""
    example = GroupbyResult.model_json_schema()["examples"][0]
    names = [f"group {number}" for number in range(ROWS)]
    keys = [{**example["keys"][0], "values": names}]
    column = {**example["columns"][0], "values": [0.1] * ROWS, "counts": [1] * ROWS}
    column |= {"hex": ["0x1.999999999999ap-4"] * ROWS} if column.get("hex") else {}
    table = {**example, "keys": keys, "columns": [column], "sizes": [1] * ROWS, "groups": ROWS}
    job_id = api.submit("ann")
    api.finish(api.claim(job_id), table)
    return f"/v1/jobs/{job_id}/result?format=csv"


@contextmanager
def unread(api: Api, user: str, path: str, count: int) -> Iterator[list[bytes]]:
    """Ask over so many connections, and read nothing but the first line of each answer."""
    address = urlsplit(api.url)
    connections: list[socket.socket] = []
    try:
        for _ in range(count):
            connection = socket.create_connection((address.hostname or "", address.port or 0))
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            token = api.tokens[user]
            connection.sendall(f"GET {path} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {token}\r\n\r\n".encode())
            connections.append(connection)
        yield [connection.recv(12) for connection in connections]
    finally:
        for connection in connections:
            connection.close()


def test_a_user_who_reads_nothing_holds_two_places_and_others_are_answered(heavy: Api) -> None:
    path = artefact_of(heavy)
    with unread(heavy, "ann", path, 12) as answers:
        assert answers.count(b"HTTP/1.1 200") == OF_ONE_USER
        assert answers.count(b"HTTP/1.1 429") == 12 - OF_ONE_USER
        refused = heavy.client("ann").get(path)
        assert (refused.status_code, int(refused.headers["Retry-After"]) > 0) == (429, True)
        nowhere = heavy.client("ann").get(f"/v1/jobs/{uuid4()}/artefact?format=csv")
        assert nowhere.status_code == 429, "it is refused before the job is looked up"
        assert heavy.client("ann").get("/v1/ops").status_code == 200
        assert heavy.client("bob").get(path).content.count(b"\n") == STORED.size + 1
    # Whoever hangs up gives the places back.
    until(lambda: heavy.client("ann").get(path).status_code == 200)


def test_who_does_not_read_is_let_go(heavy: Api) -> None:
    path = artefact_of(heavy)
    with (
        running_api(heavy.settings.model_copy(update={"read_timeout_s": 0.5})) as api,
        unread(api, "ann", path, OF_ONE_USER) as answers,
    ):
        assert answers == [b"HTTP/1.1 200"] * OF_ONE_USER
        until(lambda: api.client("ann").get(path).status_code == 200)


def test_a_table_of_ten_thousand_groups_comes_whole_and_is_made_apart(heavy: Api) -> None:
    path, ann = table_of(heavy), heavy.client("ann")
    first = ann.get(path)  # which starts the process apart
    assert first.text.count("\n") == ROWS + 1
    with ThreadPoolExecutor(16) as pool:
        sent = [pool.submit(ann.get, path) for _ in range(16)]
        began, asked = time.monotonic(), 0
        bob = heavy.client("bob")
        while not all(each.done() for each in sent):
            assert bob.get("/v1/users/me").status_code == 200
            asked += 1
            time.sleep(0.02)
        lasted = time.monotonic() - began
        statuses = [each.result().status_code for each in sent]
    assert set(statuses) <= {200, 429}
    assert statuses.count(200) >= OF_ONE_USER
    assert asked > lasted / 0.5, "another user waits half a second and more"


def test_many_users_who_read_nothing_hold_eight_places_in_all(heavy: Api) -> None:
    path = artefact_of(heavy)
    users = [f"user{number}" for number in range(IN_ALL // OF_ONE_USER)]
    for user in users:
        heavy.tokens[user] = heavy.database.run(create_token, user)
    with ExitStack() as held:
        for user in users:
            assert held.enter_context(unread(heavy, user, path, OF_ONE_USER)) == [b"HTTP/1.1 200"] * OF_ONE_USER
        assert heavy.client("ann").get(path).status_code == 429
    until(lambda: heavy.client("ann").get(path).status_code == 200)
