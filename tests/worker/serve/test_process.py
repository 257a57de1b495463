"""Real processes: Python's own http.server is one that stays, `this` one that ends."""

import os
import signal
import time
from pathlib import Path

from tests.support.waiting import until
from warpfold.worker.serve.process import Process, stop_all

STUBBORN = """
import signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print("deaf", flush=True)
time.sleep(60)
"""


def _process(tmp_path: Path, *arguments: str) -> Process:
    return Process("one", arguments, dict(os.environ), tmp_path / "log")


def test_a_killed_process_is_seen_once_and_started_again(tmp_path: Path) -> None:
    process = _process(tmp_path, "http.server", "0", "--bind", "127.0.0.1")
    process.start()
    first = process.pid
    process.signal(signal.SIGKILL)
    codes: list[int] = []

    def back() -> bool:
        code = process.watch()
        if code is not None:
            codes.append(code)
        return process.restarts == 1

    try:
        until(back)
        assert codes == [-signal.SIGKILL]
        assert process.pid != first
        assert process.exit_code() is None
    finally:
        stop_all([process], 60.0)


def test_a_process_that_keeps_dying_is_started_ever_more_rarely(tmp_path: Path) -> None:
    process = _process(tmp_path, "this")
    process.start()
    started = time.monotonic()

    def thrice() -> bool:
        process.watch()
        return process.restarts == 3

    until(thrice)
    # Pauses of 0.1, 0.2 and 0.4 s.
    assert time.monotonic() - started > 0.7
    stop_all([process], 60.0)


def test_stopping_asks_first_and_kills_the_stubborn(tmp_path: Path) -> None:
    (tmp_path / "stubborn.py").write_text(STUBBORN)
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    stubborn = Process("stubborn", ("stubborn",), environment, tmp_path / "stubborn.log")
    polite = _process(tmp_path, "http.server", "0", "--bind", "127.0.0.1")
    for process in (stubborn, polite):
        process.start()
    until(lambda: "deaf" in stubborn.log.read_text())
    assert stop_all([stubborn, polite], 2.0) == ["stubborn"]
    assert stubborn.exit_code() == -signal.SIGKILL
    assert polite.exit_code() is not None


def test_what_a_process_prints_is_kept_in_its_log(tmp_path: Path) -> None:
    process = _process(tmp_path, "this")
    process.start()
    assert process.wait(time.monotonic() + 60)
    assert "Beautiful is better than ugly" in process.log.read_text()
