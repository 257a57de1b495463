"""Real processes, forked by a nursery."""

import gc
import os
import random
import signal
import subprocess
from collections.abc import Callable
from functools import partial
from pathlib import Path

import psutil
import pytest

from tests.support.waiting import until
from warpfold.worker.forks import Order
from warpfold.worker.nursery import Forked, Nursery

WITHIN_S = 60.0


def forked(nursery: Nursery, body: Callable[[], object]) -> Forked:
    return nursery.start(Order("some.module --slot cpu", body))


def written(nursery: Nursery, body: Callable[[Path], object], tmp_path: Path) -> str:
    """What a fork writes to a file that it is given."""
    path = tmp_path / "written"
    assert forked(nursery, partial(body, path)).wait(WITHIN_S) == 0
    return path.read_text()


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (partial(int, 3), 3),
        (dict, 0),
        (partial(exit, 4), 4),
        (partial(exit, "why"), 1),
        (partial(int, "no number"), 1),
        (partial(signal.raise_signal, signal.SIGKILL), -signal.SIGKILL),
    ],
)
def test_the_exit_code_is_what_the_body_returns_or_how_it_ends(
    nursery: Nursery, body: Callable[[], object], code: int
) -> None:
    process = forked(nursery, body)
    assert process.wait(WITHIN_S) == code
    assert process.poll() == process.returncode == code


def test_a_process_that_runs_has_its_parent_its_title_and_no_exit_code(nursery: Nursery) -> None:
    process = forked(nursery, signal.pause)
    try:
        assert process.poll() is None
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(0.01)
        seen = psutil.Process(process.pid)
        assert seen.ppid() == os.getpid()
        until(lambda: seen.cmdline()[:5] == ["python", "-m", "some.module", "--slot", "cpu"])
    finally:
        process.terminate()
    assert process.wait(WITHIN_S) == -signal.SIGTERM


def open_files(path: Path) -> None:
    path.write_text(
        " ".join(str(Path(f"/proc/self/fd/{number}").readlink()) for number in range(3, 255) if is_open(number))
    )


def is_open(number: int) -> bool:
    try:
        os.fstat(number)
    except OSError:
        return False
    return True


def test_a_nursery_has_one_thread_and_a_fork_has_no_file_but_its_tether(nursery: Nursery, tmp_path: Path) -> None:
    (tether,) = written(nursery, open_files, tmp_path).split()
    assert tether.startswith("socket:")
    assert len(list(Path(f"/proc/{nursery.pid}/task").iterdir())) == 1


def test_a_process_gets_files_by_their_numbers_and_an_environment(nursery: Nursery, tmp_path: Path) -> None:
    with (tmp_path / "printed").open("w") as file:
        order = Order("env", partial(os.system, "echo $A; echo b >&7"), (1, 7), {"A": "a", "PATH": os.environ["PATH"]})
        assert nursery.start(order, (file.fileno(), file.fileno())).wait(WITHIN_S) == 0
    assert (tmp_path / "printed").read_text() == "a\n"


def drawn(path: Path) -> None:
    path.write_text(str(random.random()))


def handlers(path: Path) -> None:
    path.write_text(" ".join(str(signal.getsignal(number)) for number in (signal.SIGTERM, signal.SIGINT)))


def test_two_forks_draw_other_random_numbers(nursery: Nursery, tmp_path: Path) -> None:
    assert written(nursery, drawn, tmp_path) != written(nursery, drawn, tmp_path)


def test_a_fork_begins_with_the_handlers_of_a_new_interpreter(nursery: Nursery, tmp_path: Path) -> None:
    assert written(nursery, handlers, tmp_path) == f"{signal.SIG_DFL} {signal.default_int_handler}"


def test_a_nursery_that_is_lost_is_replaced_and_what_it_forked_goes_on() -> None:
    nursery = Nursery(gc.disable, afresh=True)
    lost = nursery.pid
    first = forked(nursery, signal.pause)
    os.kill(lost, signal.SIGKILL)
    second = forked(nursery, signal.pause)
    try:
        assert (first.poll(), second.poll()) == (None, None)
        assert nursery.pid != lost
    finally:
        nursery.close()
        for process in (first, second):
            process.kill()
            assert process.wait(WITHIN_S) == -signal.SIGKILL
