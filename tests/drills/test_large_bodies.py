"""Bodies that are slow to read, of one user, beside a small body of another."""

import threading
import time

import httpx

from tests.support.api import THREE_VALUES, Api

SLOW = '{"kind": "reduce", "source": {"type": "values", "dtype": "int64", "values": [' + "1e-400, " * 200_000 + "1]}}"
QUICK = {**THREE_VALUES, "source": {"type": "values", "values": [0.125] * 15_000, "dtype": "float64"}}
JSON = {"Content-Type": "application/json"}


def test_a_body_of_another_user_does_not_wait_for_slow_ones(own_api: Api) -> None:
    ended: list[tuple[str, float]] = []

    def post(user: str, http: httpx.Client, **body: object) -> None:
        http.post("/v1/jobs", headers=JSON, **body)  # type: ignore[arg-type]
        ended.append((user, time.monotonic()))

    ann, bob = own_api.client("ann"), own_api.client("bob")
    for http in (ann, bob):  # the processes apart have started
        assert http.post("/v1/jobs", json=QUICK).status_code == 202
    assert ann.post("/v1/jobs", content=SLOW, headers=JSON).status_code == 422
    ended.clear()
    slow = [
        threading.Thread(target=post, args=("ann", own_api.client("ann")), kwargs={"content": SLOW}) for _ in range(4)
    ]
    for thread in slow:
        thread.start()
    time.sleep(0.2)
    post("bob", bob, json=QUICK)
    for thread in slow:
        thread.join()
    assert [user for user, _ in sorted(ended, key=lambda each: each[1])].index("bob") <= 1
