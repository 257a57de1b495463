"""`warpfold serve` while it starts: what dies is started again, and drained slots are no reason to end."""

import json
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from tests.support.api import WORKER, Api, leading
from tests.support.servers import kill
from tests.support.waiting import until
from tests.support.workers import supervised
from warpfold.app.jobs import workers
from warpfold.worker.embedded import EmbeddedRedis
from warpfold.worker.nursery import Nursery
from warpfold.worker.serve.bootstrap import Servers
from warpfold.worker.serve.process import Process, stop_all
from warpfold.worker.serve.supervisor import NotReady, wait_until_ready
from warpfold.worker.stop import Stop

NOWHERE = "http://127.0.0.1:9"
NO_SERVERS = Servers("", "", None, None)


@contextmanager
def starting(processes: Sequence[Process], servers: Servers = NO_SERVERS) -> Iterator[list[object]]:
    """A supervisor that waits for an api which never answers. The list has what it came to, once it has ended."""
    stop, came_to = Stop(), list[object]()

    def wait() -> None:
        try:
            came_to.append(wait_until_ready(processes, servers, NOWHERE, stop, lambda missing: None))
        except NotReady as error:
            came_to.append(error)

    for process in processes:
        process.start()
    waiting = threading.Thread(target=wait)
    waiting.start()
    try:
        yield came_to
    finally:
        stop.request()
        waiting.join()
        stop.close()
        stop_all(processes, 3.0)


def test_a_process_that_is_killed_before_everything_is_ready_is_started_again(tmp_path: Path, nursery: Nursery) -> None:
    process = Process("api", (supervised.__name__, "stay"), {}, tmp_path / "log", nursery)
    with starting([process]) as came_to:
        for deaths in range(1, 4):
            until(lambda: process.exit_code() is None)
            process.signal(9)
            until(partial(_restarted, process, deaths))
        assert came_to == []


def _restarted(process: Process, times: int) -> bool:
    return process.restarts == times and process.exit_code() is None


def test_a_process_that_cannot_start_is_given_up_and_named(tmp_path: Path, nursery: Nursery) -> None:
    process = Process("worker-cpu", ("no_module_of_this_name",), {}, tmp_path / "log", nursery)
    with starting([process]) as came_to:
        until(lambda: bool(came_to))
    assert "worker-cpu ended 3 times" in str(came_to[0])
    assert "no_module_of_this_name" in str(came_to[0])


def test_a_server_that_dies_before_everything_is_ready_is_started_again(tmp_path: Path) -> None:
    server = EmbeddedRedis(tmp_path / "redis")
    server.start()
    try:
        with starting([], Servers("", server.url, None, server)) as came_to:
            kill(server)
            until(server.is_running)
            assert came_to == []
    finally:
        server.stop()


@pytest.mark.parametrize("all_drained", [True, False])
def test_a_service_whose_slots_are_all_drained_has_started(tmp_path: Path, all_drained: bool) -> None:
    class Answer(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = json.dumps({"detail": "Not ready: workers.", "all_drained": all_drained}).encode()
            self.send_response(503)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args: object) -> None:
            pass

    server, stop, noted = HTTPServer(("127.0.0.1", 0), Answer), Stop(), list[str]()
    serving = threading.Thread(target=server.serve_forever)
    serving.start()

    def note(missing: str) -> None:
        noted.append(missing)
        stop.request()

    try:
        url = f"http://127.0.0.1:{server.server_port}"
        assert wait_until_ready([], NO_SERVERS, url, stop, note) is all_drained
        assert noted == ([] if all_drained else ["Not ready: workers."])
    finally:
        server.shutdown()
        serving.join()
        server.server_close()
        stop.close()


def test_the_api_says_that_every_worker_is_drained(own_api: Api) -> None:
    own_api.database.run(workers.report, WORKER, "idle", None, 60.0)
    with leading(own_api):
        assert own_api.client().get("/readyz").status_code == 200
        assert own_api.client("root").post(f"/v1/workers/{WORKER.id}/drain").status_code < 300
        problem = own_api.client().get("/readyz").json()
        assert (problem["all_drained"], problem["detail"]) == (True, "Not ready: every worker is drained.")
