"""Real processes."""

import errno
import os
import shutil
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.waiting import until
from tests.support.workers import supervised
from warpfold.worker.nursery import Nursery
from warpfold.worker.serve.process import KEPT, Process, rotate, stop_all

MOST = 1000
Make = Callable[[str], Process]


@pytest.fixture
def make(tmp_path: Path, nursery: Nursery) -> Make:
    """A process that does what a word says, by `tests/support/workers/supervised.py`."""
    return lambda word: Process(word, (supervised.__name__, word), dict(os.environ), tmp_path / word, nursery)


def test_a_killed_process_is_seen_once_and_started_again(make: Make) -> None:
    process = make("stay")
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


def test_a_process_that_keeps_dying_is_started_ever_more_rarely(make: Make) -> None:
    process = make("speak")
    process.start()
    started = time.monotonic()

    def thrice() -> bool:
        process.watch()
        return process.restarts == 3

    until(thrice)
    # Pauses of 0.1, 0.2 and 0.4 s.
    assert time.monotonic() - started > 0.7
    stop_all([process], 60.0)


def test_stopping_asks_first_and_kills_the_stubborn(make: Make) -> None:
    stubborn, polite = make("resist"), make("stay")
    for process in (stubborn, polite):
        process.start()
    until(lambda: "deaf" in stubborn.log.read_text())
    assert stop_all([stubborn, polite], 2.0) == ["resist"]
    assert stubborn.exit_code() == -signal.SIGKILL
    assert polite.exit_code() is not None


def test_what_a_process_prints_is_kept_in_its_log(make: Make) -> None:
    process = make("speak")
    process.start()
    assert process.wait(time.monotonic() + 60)
    assert sorted(process.log.read_text().split()) == ["error", "output"]


def write(path: Path, count: int, letter: str = "x") -> None:
    with path.open("ab") as file:
        file.write(f"{letter * 99}\n".encode() * count)


def test_a_log_within_its_size_is_left_alone(tmp_path: Path) -> None:
    write(tmp_path / "log", 10)
    rotate([tmp_path / "log", tmp_path / "not there"], MOST)
    assert [path.name for path in tmp_path.iterdir()] == ["log"]


def test_a_log_begins_anew_and_its_older_parts_move_on(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with log.open("ab", buffering=0) as writer:  # as a process holds it
        for letter in "abcde":
            writer.write(f"{letter * 99}\n".encode() * 11)
            rotate([log], MOST)
            assert log.stat().st_size == 0
        writer.write(b"f\n")
    assert log.read_bytes() == b"f\n"
    assert [Path(f"{log}.{n}").read_text()[0] for n in range(1, KEPT + 1)] == ["e", "d", "c"]
    assert len(list(tmp_path.iterdir())) == KEPT + 1
    assert Path(f"{log}.1").stat().st_mode & 0o777 == 0o600


def test_of_a_log_that_grew_while_nobody_looked_the_end_is_kept_in_whole_lines(tmp_path: Path) -> None:
    log = tmp_path / "log"
    write(log, 100, "a")
    write(log, 5, "b")
    log.write_bytes(log.read_bytes() + b"the last\n")
    rotate([log], MOST)
    kept = Path(f"{log}.1").read_text().splitlines()
    assert kept[-1] == "the last"
    assert {len(line) for line in kept[:-1]} == {99}
    assert 1 < len(kept) <= 2 * MOST / 100


def test_on_a_full_disk_a_log_waits_for_room_and_is_cut_in_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    log = tmp_path / "log"
    write(log, 15)
    monkeypatch.setattr(shutil, "copyfileobj", full)
    rotate([log], MOST)
    assert log.stat().st_size == 1500
    assert not Path(f"{log}.1").exists()
    write(log, 15)
    rotate([log], MOST)
    assert log.stat().st_size == 0
