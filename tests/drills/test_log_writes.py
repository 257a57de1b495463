"""Logs that cannot be written: to a full disk, a closed pipe, one that nobody reads. Nothing else fails."""

import json
import os
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import IO

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.support import processes
from tests.support.api import THREE_VALUES
from tests.support.service import running_service
from tests.support.waiting import until
from tests.support.warm import fork
from tests.support.workers import supervised
from warpfold.app.auth.access_tokens import create_token
from warpfold.app.config import Settings
from warpfold.app.db import BlockingDatabase
from warpfold.worker.nursery import Nursery
from warpfold.worker.serve.process import KEPT, Process, rotate, stop_all

ROOT = Path(__file__).parents[2]


@contextmanager
def full_disk() -> Iterator[int]:
    descriptor = os.open("/dev/full", os.O_WRONLY)
    yield descriptor
    os.close(descriptor)


@contextmanager
def closed_pipe() -> Iterator[int]:
    reading, writing = os.pipe()
    os.close(reading)
    yield writing
    os.close(writing)


@contextmanager
def unread_pipe() -> Iterator[int]:
    """Full to the brim: a plain write to it waits for ever."""
    reading, writing = os.pipe()
    fill(writing)
    yield writing
    os.close(writing)
    os.close(reading)


@contextmanager
def unread_socket() -> Iterator[int]:
    """As a service manager's journal that hangs."""
    ours, theirs = socket.socketpair()
    fill(ours.fileno())
    yield ours.fileno()
    ours.close()
    theirs.close()


def fill(descriptor: int) -> None:
    os.set_blocking(descriptor, False)
    with suppress(BlockingIOError):
        while True:
            os.write(descriptor, b"x" * 4096)
    with suppress(BlockingIOError):
        while True:
            os.write(descriptor, b"x")
    os.set_blocking(descriptor, True)


@contextmanager
def nothing() -> Iterator[None]:
    """The descriptor is closed."""
    yield None


PLACES = [full_disk, closed_pipe, unread_pipe, unread_socket, nothing]


def start(settings: Settings, place: int | None, *module: str) -> processes.Process:
    """`python -m module …` whose output and errors go to `place`. None closes both descriptors, and then an interpreter
    begins with them closed: it has no standard output."""
    environment = processes.environment(settings)
    if place is not None:
        return fork(module, environment, place)
    return subprocess.Popen(
        ["/bin/sh", "-c", 'exec "$@" >&- 2>&-', "sh", sys.executable, "-m", *module], env=environment
    )


@contextmanager
def running(settings: Settings, place: int | None, *module: str) -> Iterator[None]:
    process = start(settings, place, *module)
    try:
        yield
        assert process.poll() is None, f"{module[0]} ended with code {process.returncode}"
    finally:
        process.terminate()
        process.wait(60)


def answers(url: str) -> bool:
    with suppress(httpx.TransportError):
        return httpx.get(f"{url}/healthz").status_code == 200
    return False


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as door:
        return int(door.getsockname()[1])


def dropped(http: httpx.Client, role: str) -> float:
    [count] = [
        sample.value
        for family in text_string_to_metric_families(http.get("/metrics").text)
        for sample in family.samples
        if sample.name == "warpfold_log_lines_dropped_total" and sample.labels["role"] == role
    ]
    return count


@pytest.mark.parametrize("broken", PLACES)
def test_an_accepted_job_is_answered_as_such_and_lines_that_are_lost_are_counted(
    settings: Settings, broken: Callable[[], AbstractContextManager[int | None]]
) -> None:
    database = BlockingDatabase(settings.database_url, application="test")
    token = database.run(create_token, "ann")
    database.close()
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    with (
        broken() as place,
        running(settings, place, "warpfold.app", "--port", str(port)),
        httpx.Client(base_url=url, headers={"Authorization": f"Bearer {token}"}, timeout=60) as http,
    ):
        until(lambda: answers(url))
        for _ in range(3):
            assert http.post("/v1/jobs", json=THREE_VALUES).status_code == 202
        assert http.post("/v1/jobs", json={**THREE_VALUES, "op": "total"}).status_code == 422
        assert len(http.get("/v1/jobs").json()["items"]) == 3
        assert dropped(http, "api") >= 3


def test_a_service_on_a_full_disk_runs_jobs_to_their_results(settings: Settings, tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.symlink_to("/dev/full")
    quick = settings.model_copy(update={"dispatch_interval_s": 0.1})
    # Its end fails unless every process is still the one that was started, and ends in an orderly way.
    with running_service(quick, log) as service, service.client() as client:
        for _ in range(3):
            assert client.reduce([1e8, 1.0, -1e8]).value == 1.0
        with httpx.Client(base_url=service.url, headers={"Authorization": f"Bearer {service.token}"}) as http:
            until(lambda: min(dropped(http, role) for role in ("dispatcher", "worker")) >= 1)


PROGRAM = """
import logging, sys
import structlog
from warpfold.app import logs

class Rude:
    def __str__(self): raise RuntimeError("no")
    __repr__ = __str__

logs.configure(role="test")
log = structlog.get_logger()
for command in sys.stdin:
    match command.split():
        case ["line", word]: log.info(word, filling="y" * 200)
        case ["library", word]: logging.getLogger("uvicorn.access").info(word)
        case ["rude", "structlog"]: log.info("rude", what=Rude(), **{"a key": 1})
        case ["rude", "logging"]: logging.getLogger("some").warning("%d %s", "three", Rude())
        case ["surrogate", _]: log.info("\\ud800", name="\\udcff")
        case ["limit", size]:
            import resource, signal
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (int(size), resource.getrlimit(resource.RLIMIT_FSIZE)[1]))
    print(logs.dropped_lines(), flush=True)
"""


class Logger:
    """A process that logs what it is told, and says how many lines it has dropped."""

    def __init__(self, stderr: int | IO[bytes]) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=stderr, text=True
        )

    def tell(self, command: str) -> int:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(f"{command}\n")
        self.process.stdin.flush()
        return int(self.process.stdout.readline())

    def close(self) -> int:
        self.process.communicate(timeout=60)
        return self.process.returncode


def test_a_pipe_that_is_read_again_gets_whole_lines_and_how_many_are_missing() -> None:
    reading, writing = os.pipe()
    logger = Logger(writing)
    number = 0
    while logger.tell(f"line n{number}") == 0:
        number += 1
    lost = [logger.tell(f"{kind} lost") for kind in ("library", "line", "library")]
    assert lost == [2, 3, 4]
    os.set_blocking(reading, False)
    before = b""
    with suppress(BlockingIOError):
        while piece := os.read(reading, 1 << 16):
            before += piece
    assert logger.tell("line back") == 4
    after = os.read(reading, 1 << 16)
    assert logger.close() == 0
    os.close(writing)
    os.close(reading)
    *whole, missing, back = [json.loads(line) for line in (before + after).splitlines()]
    assert [line["event"] for line in whole] == [f"n{n}" for n in range(number)]
    assert (missing["event"], missing["dropped"], missing["level"]) == ("lines of the log were dropped", 4, "warning")
    assert (missing["role"], back["event"]) == ("test", "back")


def test_a_line_that_was_cut_in_the_middle_is_taken_back_and_counted(tmp_path: Path) -> None:
    with (tmp_path / "log").open("ab") as file:
        logger = Logger(file)
    assert logger.tell("line first") == 0
    logger.tell(f"limit {(tmp_path / 'log').stat().st_size + 20}")
    assert logger.tell("line cut") == 1
    assert logger.tell("line lost") == 2
    logger.tell("limit 1000000")
    assert logger.tell("line last") == 2
    assert logger.close() == 0
    first, missing, last = (tmp_path / "log").read_text().splitlines()
    assert json.loads(first)["event"] == "first"
    assert json.loads(missing)["dropped"] == 2
    assert json.loads(last)["event"] == "last"


def test_what_cannot_be_worded_is_a_line_that_says_so(tmp_path: Path) -> None:
    with (tmp_path / "log").open("ab") as file:
        logger = Logger(file)
    for command in ("rude structlog", "rude logging", "surrogate x"):
        assert logger.tell(command) == 0
    assert logger.close() == 0
    ours, theirs, surrogate = [json.loads(line) for line in (tmp_path / "log").read_text().splitlines()]
    assert ours["event"] == theirs["event"] == "a line of the log cannot be worded"
    assert (ours["said"], theirs["logger"]) == ("rude", "some")
    assert surrogate["name"] == "\udcff"


LENGTH = 99


def test_the_log_of_a_chatty_process_stays_within_its_bounds(tmp_path: Path, nursery: Nursery) -> None:
    most = 1 << 18
    log = tmp_path / "chatty.log"
    process = Process("chatty", (supervised.__name__, "chatter"), dict(os.environ), log, nursery)
    process.start()
    try:
        rotated = 0
        while rotated < 3 * KEPT:
            until(lambda: log.stat().st_size > most)
            rotate([log], most)
            rotated += 1
            assert len(parts(log)) <= KEPT
            assert max(part.stat().st_size for part in parts(log)) < 1 << 26
        assert process.exit_code() is None
    finally:
        stop_all([process], 60.0)
    # Cut where it was appended to: there is no hole at the beginning.
    assert b"\0" not in log.read_bytes()
    lines = [line for part in [*parts(log)[::-1], log] for line in part.read_text().splitlines()]
    numbers = [int(line[:9]) for line in lines if len(line) == LENGTH]  # of a line at a cut only the beginning may stay
    assert numbers == sorted(numbers)
    assert len(parts(log)) == KEPT


def parts(log: Path) -> Sequence[Path]:
    """The older parts of a log, the latest first."""
    return [part for number in range(1, KEPT + 2) if (part := Path(f"{log}.{number}")).exists()]


WRITER = """
import os, resource, signal, sys
from warpfold.app.log_stream import LogStream
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # a write beyond the limit is cut, and then fails, as on a full disk
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
lines = LogStream(sys.stderr, lambda count: f"{count} dropped")
for number in range(30):
    lines.write(f"{number:02d} {'x' * 60}\\n")
print(lines.dropped)
"""


def test_no_half_line_stays_on_a_full_disk_for_another_process_to_write_behind(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with log.open("ab") as output:
        ended = subprocess.run([sys.executable, "-c", WRITER], stderr=output, stdout=subprocess.PIPE, check=True)
        output.write(b"another process\n")
    *lines, last = log.read_text().splitlines()
    assert last == "another process"
    whole = [line for line in lines if len(line) == 63]
    assert len(whole) == 30 - int(ended.stdout) == 15
    assert {line for line in lines if line not in whole} == {"1 dropped"}
