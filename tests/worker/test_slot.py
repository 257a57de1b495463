"""Each test works with a real child process."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from tests.support import processes
from tests.support.exchange import ending_of
from tests.support.leases import lease_on
from tests.support.waiting import until
from tests.support.workers.actor import actor, open_and_exit, open_slowly, open_without_gpu
from warpfold.app.jobs.attempt import Failure, Lease, Success
from warpfold.contract.states import Reason
from warpfold.worker.child_process import BrokenSlot
from warpfold.worker.lease_exchange import Died, EndCause, Ending, Hung
from warpfold.worker.messages import Opener, Progress
from warpfold.worker.nursery import Nursery
from warpfold.worker.slot import Slot
from warpfold.worker.stop import Stop, StopRequested, WaitAbandoned


@pytest.fixture
def stop() -> Iterator[Stop]:
    stop = Stop()
    yield stop
    stop.close()


@pytest.fixture
def slot(stop: Stop, nursery: Nursery) -> Iterator[Slot]:
    slot = Slot("cpu", actor(), stop, nursery, grace_s=0.3)
    slot.ready()
    yield slot
    slot.close()


def asked(do: str) -> Lease:
    return lease_on(json.dumps({"do": do}))


def run(slot: Slot, spec: str, timeout_s: float = 60.0) -> Ending:
    return ending_of(slot, asked(spec), timeout_s)


def test_a_child_describes_its_device_once_it_is_open(slot: Slot) -> None:
    assert slot.ready() == {"backend": "cpu", "name": "actor"}


def test_one_warm_child_runs_job_after_job(slot: Slot) -> None:
    first, second = run(slot, "say one"), run(slot, "say two")
    assert isinstance(first, Success)
    assert isinstance(second, Success)
    assert first.result == {"pid": slot.pid, "said": "one"}
    assert second.result == {"pid": slot.pid, "said": "two"}


def test_the_wait_for_a_child_that_was_busy_since_the_claim_is_time_in_the_queue(slot: Slot, tmp_path: Path) -> None:
    note, hour = json.dumps({"do": f"note {tmp_path / 'notes'}"}), 3600.0
    waited = lease_on(note, queued_ms=5.0, claimed_s=time.monotonic() - hour)
    with slot.exchange() as exchange:
        exchange.send(waited)
        exchange.send(lease_on(note, queued_ms=5.0))
        answers = [exchange.receive(60.0), exchange.receive(60.0)]
    queued = [answer.result["timings"]["queued_ms"] for answer in answers]  # type: ignore[union-attr, index]
    assert queued[0] >= hour * 1e3 + 5.0
    assert 5.0 <= queued[1] < hour * 1e3


@pytest.mark.parametrize("open_s", [0.0, 3600.0])
def test_a_child_that_has_the_devices_of_others_open_goes_when_no_job_follows(
    stop: Stop, nursery: Nursery, open_s: float
) -> None:
    slot = Slot("gang", actor(), stop, nursery, grace_s=0.3, open_s=open_s)
    try:
        slot.ready()
        slot.close_devices()
        assert slot.pid is not None, "before its first job a child has opened nothing"
        for job in ("say hello", "raise input"):
            slot.ready()
            before = slot.pid
            assert isinstance(run(slot, job), Success | Failure)
            slot.close_devices()
            assert slot.pid == (before if open_s else None)
    finally:
        slot.close()


def test_what_a_child_answered_before_it_died_counts_although_more_was_to_be_sent(slot: Slot) -> None:
    assert slot.pid is not None
    child = psutil.Process(slot.pid)
    with slot.exchange() as exchange:
        exchange.send(asked("say a"))
        exchange.send(asked("exit 3"))
        until(lambda: child.status() == psutil.STATUS_ZOMBIE)
        exchange.send(asked("say b"))
        answered, died = exchange.receive(60.0), exchange.receive(60.0)
    assert isinstance(answered, Success)
    assert answered.result["said"] == "a"
    assert died == Died(3)


def test_a_lease_of_many_megabytes_passes(slot: Slot) -> None:
    ending = run(slot, "say " + "x" * 5_000_000)
    assert isinstance(ending, Success)
    assert len(str(ending.result["said"])) == 5_000_000


def test_the_parent_hears_of_progress_but_not_of_every_step_of_it(slot: Slot) -> None:
    heard: list[object] = []
    started = time.monotonic()
    ending_of(slot, asked("count 1000"), heard=heard.append)  # a second at least
    seen = [news for news in heard if isinstance(news, Progress)]
    # Ten a second, and what was kept back with each pulse, which comes every 1.5 s, and at the end.
    assert 2 <= len(seen) <= 11 * (time.monotonic() - started) + 1
    assert [progress.done for progress in seen] == sorted(progress.done for progress in seen)
    assert seen[0].total == 1000


def test_the_parent_hears_of_the_last_progress_before_a_halt(stop: Stop, nursery: Nursery) -> None:
    slot = Slot("cpu", actor(), stop, nursery, grace_s=0.3, silent_s=1.0)

    def heard(news: object) -> None:
        if isinstance(news, Progress) and news.done == news.total:
            stop.request()

    try:
        slot.ready()
        assert ending_of(slot, asked("halt 5"), 30.0, heard) is EndCause.STOPPING
    finally:
        slot.close()


def test_a_job_beyond_its_time_is_ended_with_its_child(slot: Slot) -> None:
    before, started = slot.pid, time.monotonic()
    assert run(slot, "sleep 60", timeout_s=0.2) is EndCause.TIMEOUT
    assert time.monotonic() - started < 30.0
    slot.ready()
    assert slot.pid != before
    assert isinstance(run(slot, "say again"), Success)


def test_a_child_deaf_to_sigterm_is_killed(slot: Slot) -> None:
    child = psutil.Process(slot.pid)
    assert run(slot, "deafly-sleep 60", timeout_s=0.2) is EndCause.TIMEOUT
    processes.wait_for_ends([child])


def test_an_error_in_the_parent_leaves_no_child_that_would_answer_late(slot: Slot) -> None:
    def broken(news: object) -> None:
        raise RuntimeError("no")

    with pytest.raises(RuntimeError):
        ending_of(slot, asked("sleep 0.3"), heard=broken)
    slot.ready()
    ending = run(slot, "say fresh")
    assert isinstance(ending, Success)
    assert ending.result["said"] == "fresh"


@pytest.fixture
def impatient(stop: Stop, nursery: Nursery) -> Iterator[Slot]:
    """One that takes a child for hung that is silent for a second."""
    slot = Slot("cpu", actor(), stop, nursery, grace_s=0.3, silent_s=1.0)
    slot.ready()
    yield slot
    slot.close()


@pytest.mark.parametrize("spec", ["stop", "freeze 60"])
def test_a_child_that_says_and_does_nothing_is_hung_and_replaced(impatient: Slot, spec: str) -> None:
    child = psutil.Process(impatient.pid)
    assert run(impatient, spec, timeout_s=600.0) == Hung(1.0)
    processes.wait_for_ends([child])
    impatient.ready()
    assert isinstance(run(impatient, "say again"), Success)


@pytest.mark.parametrize("spec", ["sleep 3", "compute 3000000"])
def test_a_child_that_is_silent_over_its_work_is_not_hung(impatient: Slot, spec: str) -> None:
    assert isinstance(run(impatient, spec), Success)


def test_time_in_which_nobody_listened_does_not_count(impatient: Slot) -> None:
    """Because the parent waits for a Postgres that stalls, say."""
    stalls = iter([1.5, 1.5])
    ending = ending_of(impatient, asked("sleep 4"), heard=lambda news: time.sleep(next(stalls, 0.0)))
    assert isinstance(ending, Success)


BEYOND_THE_PIPE = "say " + "x" * 5_000_000


def test_a_stopped_child_that_takes_no_lease_is_hung(impatient: Slot) -> None:
    psutil.Process(impatient.pid).suspend()
    assert run(impatient, BEYOND_THE_PIPE, timeout_s=600.0) == Hung(1.0)


def test_a_job_whose_stopped_child_takes_no_lease_keeps_its_time(slot: Slot) -> None:
    psutil.Process(slot.pid).suspend()
    assert run(slot, BEYOND_THE_PIPE, timeout_s=0.2) is EndCause.TIMEOUT


def test_a_worker_whose_stopped_child_takes_no_lease_can_be_stopped(slot: Slot, stop: Stop) -> None:
    psutil.Process(slot.pid).suspend()
    stop.request()
    assert run(slot, BEYOND_THE_PIPE, timeout_s=600.0) is EndCause.STOPPING


def test_a_child_that_was_slow_to_take_its_lease_gets_all_of_it(slot: Slot) -> None:
    child = psutil.Process(slot.pid)
    child.suspend()

    ending = ending_of(slot, asked(BEYOND_THE_PIPE), heard=lambda news: child.resume())
    assert isinstance(ending, Success)
    assert len(str(ending.result["said"])) == 5_000_000


def test_a_child_stopped_while_idle_is_replaced_before_the_next_job(slot: Slot) -> None:
    before = psutil.Process(slot.pid)
    before.suspend()
    give_up = time.monotonic() + 60
    while slot.pid == before.pid:  # a signal takes a moment
        slot.ready()
        assert time.monotonic() < give_up
    assert isinstance(run(slot, "say alive"), Success)


def test_a_request_to_stop_ends_the_job_at_once(slot: Slot, stop: Stop) -> None:
    stop.request()
    assert run(slot, "sleep 60") is EndCause.STOPPING


@pytest.mark.parametrize(("spec", "code"), [("exit 7", 7), (f"signal {signal.SIGKILL}", -9), ("signal 11", -11)])
def test_a_child_that_dies_is_noticed_and_replaced(slot: Slot, spec: str, code: int) -> None:
    assert run(slot, spec) == Died(code)
    slot.ready()
    assert isinstance(run(slot, "say alive"), Success)


def test_a_child_killed_while_idle_is_replaced_before_the_next_job(slot: Slot) -> None:
    before = psutil.Process(slot.pid)
    before.kill()
    give_up = time.monotonic() + 60
    while slot.pid == before.pid:  # a dying process holds its pipe for a moment
        slot.ready()
        assert time.monotonic() < give_up
        time.sleep(0.001)
    assert isinstance(run(slot, "say alive"), Success)


@pytest.mark.parametrize(
    ("spec", "reason"),
    [
        ("raise input", Reason.INVALID_INPUT),
        ("raise memory", Reason.OUT_OF_MEMORY),
        ("raise host-memory", Reason.OUT_OF_MEMORY),
    ],
)
def test_errors_that_the_child_understands_leave_it_warm(slot: Slot, spec: str, reason: Reason) -> None:
    before = slot.pid
    ending = run(slot, spec)
    assert isinstance(ending, Failure)
    assert ending.reason is reason
    slot.ready()
    assert slot.pid == before


def test_a_child_that_saw_a_cuda_error_is_replaced(slot: Slot) -> None:
    before = slot.pid
    ending = run(slot, "raise cuda")
    assert isinstance(ending, Failure)
    assert (ending.reason, ending.error) == (Reason.CUDA_ERROR, "CUDA_ERROR_ILLEGAL_ADDRESS")
    slot.ready()
    assert slot.pid != before


def test_an_unforeseen_error_shows_a_number_to_its_owner_and_its_traceback_to_the_log(
    stop: Stop, nursery: Nursery, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    start = nursery.start
    monkeypatch.setattr(  # the child's stderr is the one of this moment, not that of the nursery
        nursery, "start", lambda order, files: start(replace(order, files=(*order.files, 2)), (*files, 2))
    )
    slot = Slot("cpu", actor(), stop, nursery)
    slot.ready()
    ending = run(slot, "raise bug")
    slot.close()
    assert isinstance(ending, Failure)
    assert ending.reason is Reason.INTERNAL
    assert "secret" not in ending.error
    number = ending.error.rstrip(".").split()[-1]
    logged = capfd.readouterr().err
    assert f'"incident": "{number}"' in logged
    assert "RuntimeError: secret detail" in logged


@pytest.mark.parametrize(
    ("opener", "message"),
    [(open_without_gpu, "no GPU is visible to this process"), (open_and_exit, "ended with code 3")],
)
def test_a_device_that_does_not_open_breaks_the_slot(
    stop: Stop, nursery: Nursery, opener: Opener, message: str
) -> None:
    with pytest.raises(BrokenSlot, match=message):
        Slot("cuda:0", opener, stop, nursery).ready()


def test_a_device_that_opens_too_slowly_breaks_the_slot(stop: Stop, nursery: Nursery) -> None:
    with pytest.raises(BrokenSlot, match=r"did not open within 0\.3 s"):
        Slot("cuda:0", open_slowly, stop, nursery, start_within_s=0.3, grace_s=0.3).ready()


def test_a_request_to_stop_ends_the_wait_for_the_device(stop: Stop, nursery: Nursery) -> None:
    stop.request()
    with pytest.raises(StopRequested):
        Slot("cuda:0", open_slowly, stop, nursery).ready()


def test_a_start_that_is_no_longer_wanted_is_given_up(stop: Stop, nursery: Nursery) -> None:
    asked = 0

    def give_up() -> bool:
        nonlocal asked
        asked += 1
        return asked == 3

    slot = Slot("cuda:0", open_slowly, stop, nursery, grace_s=0.3)
    with pytest.raises(WaitAbandoned):
        slot.ready(give_up)
    assert (asked, slot.pid) == (3, None)


_PARENT = """
import sys, time
from tests.support import processes
from tests.support.exchange import ending_of
from tests.support.leases import lease_on
from tests.support.workers.actor import actor, prepare_nothing
from warpfold.app import logs
from warpfold.worker.nursery import Nursery
from warpfold.worker.slot import Slot
from warpfold.worker.stop import Stop

def main():
    logs.configure(role="test")  # on stderr
    slot = Slot("cpu", actor(), Stop(), Nursery(prepare_nothing))
    slot.ready()
    print(slot.pid, flush=True)
    ending_of(slot, lease_on('{"do": "' + sys.argv[1] + '"}'))
    time.sleep(60)

if __name__ == "__main__":
    main()
"""


@pytest.mark.parametrize("spec", ["sleep 60", "say idle"])
def test_a_child_does_not_outlive_a_killed_parent(tmp_path: Path, spec: str) -> None:
    script = tmp_path / "parent.py"
    script.write_text(_PARENT)
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    with subprocess.Popen(
        [sys.executable, str(script), spec], stdout=subprocess.PIPE, text=True, env=environment
    ) as parent:
        assert parent.stdout is not None
        child = psutil.Process(int(parent.stdout.readline()))
        time.sleep(0.1)  # let the lease arrive
        parent.kill()
        processes.wait_for_ends([child], within_s=30.0)
