"""Real processes that are stopped, and a socket that takes requests and answers none."""

import os
import signal
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.clock import HandClock
from tests.support.waiting import until
from warpfold.worker.serve.bootstrap import Servers
from warpfold.worker.serve.hangs import Hangs
from warpfold.worker.serve.process import Process, stop_all
from warpfold.worker.serve.supervisor import keep_alive
from warpfold.worker.stop import Stop

NOWHERE = "http://127.0.0.1:9"


@pytest.fixture
def process(tmp_path: Path) -> Iterator[Process]:
    command = ("http.server", "0", "--bind", "127.0.0.1")
    process = Process("dispatcher", command, dict(os.environ), tmp_path / "log")
    process.start()
    yield process
    process.signal(signal.SIGCONT)
    stop_all([process], 60.0)


def test_a_process_that_is_stopped_is_replaced(process: Process) -> None:
    before = process.pid
    stop = Stop()
    hangs = Hangs(NOWHERE, after_s=0.5)
    keeper = threading.Thread(target=keep_alive, args=([process], Servers("", "", None, None), stop, hangs, 1 << 20))
    process.signal(signal.SIGSTOP)
    keeper.start()
    try:
        until(lambda: process.restarts != 0)
    finally:
        stop.request()
        keeper.join()
        stop.close()
    assert process.pid != before
    assert process.exit_code() is None


def test_it_is_given_its_time_and_one_that_wakes_up_in_time_is_left_alone(process: Process) -> None:
    clock = HandClock()
    hangs = Hangs(NOWHERE, after_s=20.0, clock=clock)
    found: list[Process] = []

    def look() -> None:
        found.extend(hangs.find([process]))

    clock.pass_slowly(60, look)
    process.signal(signal.SIGSTOP)
    until_state(process, "T")
    clock.pass_slowly(15, look)
    clock.pass_over(3600)  # the supervisor is stopped, too
    look()
    assert found == []
    process.signal(signal.SIGCONT)
    until_state(process, "S")
    clock.pass_slowly(60, look)
    assert found == []
    process.signal(signal.SIGSTOP)
    until_state(process, "T")
    clock.pass_slowly(30, look)
    assert found[0] is process


def until_state(process: Process, state: str) -> None:
    """Until the kernel shows the process so."""
    until(lambda: Path(f"/proc/{process.pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == state)


def test_an_api_that_takes_requests_and_answers_none_hangs(process: Process) -> None:
    process.name = "api"
    clock = HandClock()
    with socket.create_server(("127.0.0.1", 0)) as deaf:
        hangs = Hangs(f"http://127.0.0.1:{deaf.getsockname()[1]}", after_s=2.0, clock=clock)
        assert hangs.find([process]) == []
        clock.pass_over(4)
        assert hangs.find([process]) == [process]


def test_an_api_that_answers_or_is_only_starting_does_not(process: Process) -> None:
    process.name = "api"
    clock = HandClock()
    hangs = Hangs(NOWHERE, after_s=2.0, clock=clock)
    for _ in range(3):
        clock.pass_over(4)
        assert hangs.find([process]) == []
