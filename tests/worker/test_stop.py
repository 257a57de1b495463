import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator

import pytest

from warpfold.worker.stop import Stop


@pytest.fixture
def stop() -> Iterator[Stop]:
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)}
    signal.signal(signal.SIGHUP, signal.SIG_DFL)  # the tests themselves may run under nohup
    stop = Stop()
    stop.listen()
    yield stop
    for number, handler in before.items():
        signal.signal(number, handler)
    stop.close()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_is_a_request_to_stop(stop: Stop, number: signal.Signals) -> None:
    assert not stop.requested
    signal.raise_signal(number)
    assert stop.requested


def test_nohup_keeps_a_process_from_ending_with_its_terminal() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    others = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    stop = Stop()
    try:
        stop.listen()
        signal.raise_signal(signal.SIGHUP)
        assert not stop.requested
    finally:
        signal.signal(signal.SIGHUP, before)
        for number, handler in others.items():
            signal.signal(number, handler)
        stop.close()


def test_a_wait_ends_with_the_request(stop: Stop) -> None:
    assert not stop.wait(0.01)
    later = threading.Timer(0.05, stop.request)
    later.start()
    started = time.monotonic()
    assert stop.wait(60.0)
    assert time.monotonic() - started < 30.0
    later.join()


def test_a_signal_ends_a_wait() -> None:
    script = (
        "from warpfold.worker.stop import Stop\n"
        "stop = Stop(); stop.listen(); print('waiting', flush=True)\n"
        "if stop.wait(60.0): print('stopped', flush=True)\n"
    )
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "waiting\n"
        process.terminate()
        assert process.stdout.readline() == "stopped\n"
