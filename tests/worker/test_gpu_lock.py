"""Locks are between processes; locks of different objects in one process exclude each other just the same."""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from filelock import FileLock, Timeout

from warpfold.worker.gpu_lock import GpuTurn, SlotTaken, gpus_of, slot_lock
from warpfold.worker.stop import WaitAbandoned


def never() -> bool:
    return False


def at_once() -> bool:
    return True


def test_a_slot_has_one_worker(tmp_path: Path) -> None:
    refused = pytest.raises(SlotTaken, match="another worker already serves slot cuda:0")
    with slot_lock(tmp_path, "cuda:0"), refused, slot_lock(tmp_path, "cuda:0"):
        pytest.fail("two workers in one slot")
    with slot_lock(tmp_path, "cuda:0"):
        pass


def test_slots_do_not_disturb_each_other(tmp_path: Path) -> None:
    with slot_lock(tmp_path, "cuda:0"), slot_lock(tmp_path, "cuda:1"), slot_lock(tmp_path, "cpu"):
        pass


def test_a_killed_process_leaves_its_slot_free(tmp_path: Path) -> None:
    script = (
        "import sys, time; from pathlib import Path; from warpfold.worker.gpu_lock import slot_lock\n"
        "with slot_lock(Path(sys.argv[1]), 'cpu'): print('held', flush=True); time.sleep(60)"
    )
    with subprocess.Popen([sys.executable, "-c", script, str(tmp_path)], stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        with pytest.raises(SlotTaken), slot_lock(tmp_path, "cpu"):
            pass
        os.kill(holder.pid, signal.SIGKILL)
        holder.wait()
    with slot_lock(tmp_path, "cpu"):
        pass


def test_a_gpu_is_used_by_one_at_a_time(tmp_path: Path) -> None:
    with GpuTurn(tmp_path, [0]).hold(never), pytest.raises(WaitAbandoned), GpuTurn(tmp_path, [0, 1]).hold(at_once):
        pytest.fail("two on one GPU")
    with GpuTurn(tmp_path, [0, 1]).hold(at_once):
        pass


def test_whoever_gives_up_leaves_nothing_locked(tmp_path: Path) -> None:
    gang = GpuTurn(tmp_path, [0, 1])
    with GpuTurn(tmp_path, [1]).hold(never):
        with pytest.raises(WaitAbandoned), gang.hold(at_once):
            pass
        with GpuTurn(tmp_path, [0]).hold(at_once):
            pass
    with gang.hold(at_once):
        pass


def test_a_cpu_slot_waits_for_no_gpu(tmp_path: Path) -> None:
    assert gpus_of("cpu") == ()
    assert gpus_of("cuda:3") == (3,)
    with GpuTurn(tmp_path, ()).hold(at_once), GpuTurn(tmp_path, ()).hold(at_once):
        pass


def test_the_gang_uses_all_gpus_of_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("warpfold.worker.gpu_lock.gpu_count", lambda: 4)
    assert gpus_of("gang") == (0, 1, 2, 3)


class Job:
    """A job that takes its turn in a thread, notes its name when it has it, and ends when told to."""

    def __init__(self, name: str, turn: GpuTurn, order: list[str]) -> None:
        self._name, self._turn, self._order = name, turn, order
        self._end = threading.Event()
        self.began = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        with self._turn.hold(never):
            self._order.append(self._name)
            self.began.set()
            self._end.wait(60)

    def end(self) -> None:
        self._end.set()
        self._thread.join()


def wait_until_passing(directory: Path, gpu: int) -> None:
    """Until somebody stands in the turnstile of a GPU."""
    turnstile = FileLock(directory / f"gpu-{gpu}.next.lock")
    give_up = time.monotonic() + 60
    while True:
        try:
            with turnstile.acquire(blocking=False):
                pass
        except Timeout:
            return
        assert time.monotonic() < give_up
        time.sleep(0.005)


def test_a_gang_that_waits_comes_before_every_later_job_of_its_gpus(tmp_path: Path) -> None:
    order: list[str] = []
    running = [Job(f"slot {gpu}", GpuTurn(tmp_path, [gpu]), order) for gpu in range(4)]
    for job in running:
        assert job.began.wait(60)
    gang = Job("gang", GpuTurn(tmp_path, range(4)), order)
    wait_until_passing(tmp_path, 3)  # the last turnstile that it passes
    later = [Job(f"later {gpu}", GpuTurn(tmp_path, [gpu]), order) for gpu in range(4)]
    for job in running:
        job.end()
    assert gang.began.wait(60)
    assert order[4:] == ["gang"]
    gang.end()
    for job in later:
        assert job.began.wait(60)
        job.end()


def test_a_slot_that_waits_for_a_gang_comes_before_the_next_gang(tmp_path: Path) -> None:
    order: list[str] = []
    first = Job("gang", GpuTurn(tmp_path, range(4)), order)
    assert first.began.wait(60)
    slots = [Job(f"slot {gpu}", GpuTurn(tmp_path, [gpu]), order) for gpu in range(4)]
    for gpu in range(4):
        wait_until_passing(tmp_path, gpu)
    second = Job("next gang", GpuTurn(tmp_path, range(4)), order)
    first.end()
    for job in slots:
        assert job.began.wait(60)
    assert "next gang" not in order
    for job in slots:
        job.end()
    assert second.began.wait(60)
    second.end()
    assert order[-1] == "next gang"


def test_a_gang_is_not_starved_by_busy_slots_nor_they_by_it(tmp_path: Path) -> None:
    """Two slots run short jobs back to back; a gang of both GPUs comes again and again. All get their turns."""
    runs = {"slot 0": 0, "slot 1": 0, "gang": 0}
    using = {0: 0, 1: 0}
    clashes: list[int] = []
    end = time.monotonic() + 60

    def user(name: str, gpus: tuple[int, ...], job_s: float) -> None:
        turn = GpuTurn(tmp_path, gpus)
        while min(runs.values()) < 5 and time.monotonic() < end:
            with turn.hold(never):
                for gpu in gpus:
                    using[gpu] += 1
                    if using[gpu] != 1:
                        clashes.append(gpu)
                time.sleep(job_s)
                for gpu in gpus:
                    using[gpu] -= 1
                runs[name] += 1

    threads = [
        threading.Thread(target=user, args=arguments)
        for arguments in (("slot 0", (0,), 0.005), ("slot 1", (1,), 0.008), ("gang", (1, 0), 0.01))
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not clashes
    assert min(runs.values()) >= 5, runs
