"""A spare child takes the place of one that is gone. Each test works with real processes."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import psutil
import pytest

from tests.support import processes
from tests.support.exchange import ending_of
from tests.support.leases import lease_on
from tests.support.waiting import until
from tests.support.workers.actor import (
    actor,
    note,
    opened_with_a_note,
    opened_with_rates,
    prepare_and_exit,
    prepare_forever,
    prepare_nothing,
)
from warpfold.app.jobs.attempt import Success
from warpfold.worker.lease_exchange import Died, Ending
from warpfold.worker.messages import Opener, Prepare, Spare
from warpfold.worker.nursery import Nursery
from warpfold.worker.slot import Slot
from warpfold.worker.stop import Stop, StopRequested

Make = Callable[..., Slot]


@pytest.fixture
def make(stop: Stop, nursery: Nursery) -> Iterator[Make]:
    """A slot whose child is ready, with a spare child."""
    with ExitStack() as made:

        def make(prepare: Prepare = prepare_nothing, *, opens: bool = True, opener: Opener | None = None) -> Slot:
            slot = Slot("cpu", opener or actor(), stop, nursery, grace_s=0.3, spare=Spare(prepare, opens))
            made.callback(slot.close)
            slot.ready()
            return slot

        yield make


def run(slot: Slot, do: str, timeout_s: float = 60.0) -> Ending:
    return ending_of(slot, lease_on(json.dumps({"do": do})), timeout_s)


def served_by(slot: Slot) -> object:
    """The process id of the child that serves the next job."""
    slot.ready()
    ending = run(slot, "say hello")
    assert isinstance(ending, Success)
    return ending.result["pid"]


def spare_of(slot: Slot) -> int:
    """The process id of the spare child, once it stands by."""

    def stands_by() -> int | None:
        slot.keep_spare()
        return slot.spare_pid

    pid = until(stands_by)
    assert pid is not None
    return pid


def unprepared_spare_of(slot: Slot) -> psutil.Process:
    """The process of a spare child that will never stand by."""
    before = {child.pid for child in processes.spawned(os.getpid())}
    slot.keep_spare()
    # A process is a child's by its command, which it has a moment after it begins.
    (spare,) = until(lambda: [child for child in processes.spawned(os.getpid()) if child.pid not in before])
    assert slot.spare_pid is None
    return spare


@pytest.mark.parametrize("opens", [True, False])
def test_the_spare_serves_the_next_job_after_a_loss_and_another_one_stands_by(make: Make, opens: bool) -> None:
    slot = make(opens=opens)
    first, spare = slot.pid, spare_of(slot)
    assert isinstance(run(slot, "signal 9"), Died)
    assert served_by(slot) == spare
    assert spare_of(slot) not in (first, spare)


@pytest.mark.parametrize("opens", [True, False])
def test_a_spare_prepares_itself_ahead_and_opens_its_device_ahead_only_where_that_does_no_harm(
    make: Make, tmp_path: Path, opens: bool
) -> None:
    prepared, opened = tmp_path / "prepared", tmp_path / "opened"
    slot = make(partial(note, prepared), opens=opens, opener=partial(opened_with_a_note, opened))
    first, spare = slot.pid, spare_of(slot)
    assert prepared.read_text().split() == [str(spare)]
    assert opened.read_text().split() == [str(first), str(spare)][: 1 + opens]
    run(slot, "exit 1")
    assert served_by(slot) == spare
    assert opened.read_text().split() == [str(first), str(spare)]


def test_a_spare_that_is_killed_is_replaced(make: Make) -> None:
    slot = make()
    first, killed = slot.pid, spare_of(slot)
    psutil.Process(killed).kill()
    until(lambda: spare_of(slot) != killed)
    assert slot.pid == first


def test_a_spare_that_was_stopped_is_not_made_use_of(make: Make) -> None:
    slot = make()
    stopped = psutil.Process(spare_of(slot))
    stopped.suspend()
    until(lambda: stopped.status() == psutil.STATUS_STOPPED)
    run(slot, "exit 1")
    assert served_by(slot) != stopped.pid
    processes.wait_for_ends([stopped])


def test_a_spare_that_fails_costs_the_slot_nothing(make: Make) -> None:
    slot = make(prepare_and_exit)
    slot.keep_spare()
    run(slot, "exit 1")
    assert served_by(slot) == slot.pid


def test_a_spare_that_is_not_prepared_yet_makes_way_for_a_job_that_takes_times(make: Make) -> None:
    slot = make(prepare_forever)
    spare = unprepared_spare_of(slot)
    run(slot, "say hello")
    assert spare.is_running()
    run(slot, "take-times")
    processes.wait_for_ends([spare])


def test_a_spare_that_stands_by_stays_beside_a_job_that_takes_times(make: Make) -> None:
    slot = make()
    spare = spare_of(slot)
    run(slot, "take-times")
    assert spare_of(slot) == spare


def test_a_slot_that_is_closed_leaves_no_process(make: Make) -> None:
    slot = make()
    both = [psutil.Process(slot.pid), psutil.Process(spare_of(slot))]
    slot.close()
    processes.wait_for_ends(both)


def test_a_request_to_stop_ends_the_wait_for_a_spare(make: Make, stop: Stop) -> None:
    slot = make(prepare_forever)
    spare = unprepared_spare_of(slot)
    run(slot, "exit 1")
    stop.request()
    with pytest.raises(StopRequested):
        slot.ready()
    processes.wait_for_ends([spare])


_PARENT = """
import time
from tests.support.workers.actor import actor, prepare_nothing
from warpfold.app import logs
from warpfold.worker.messages import Spare
from warpfold.worker.nursery import Nursery
from warpfold.worker.slot import Slot
from warpfold.worker.stop import Stop

def main():
    logs.configure(role="test")  # on stderr
    slot = Slot("cpu", actor(), Stop(), Nursery(prepare_nothing), spare=Spare(prepare_nothing, True))
    slot.ready()
    while slot.spare_pid is None:
        slot.keep_spare()
        time.sleep(0.01)
    print(slot.spare_pid, flush=True)
    time.sleep(60)

if __name__ == "__main__":
    main()
"""


def test_a_spare_does_not_outlive_a_killed_parent(tmp_path: Path) -> None:
    script = tmp_path / "parent.py"
    script.write_text(_PARENT)
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    with subprocess.Popen(
        [sys.executable, str(script)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment
    ) as parent:
        assert parent.stdout is not None
        spare = psutil.Process(int(parent.stdout.readline()))
        parent.kill()
        processes.wait_for_ends([spare], within_s=30.0)


def test_an_idle_child_measures_its_slot_and_a_spare_child_once_it_works(make: Make) -> None:
    slot = make(opener=opened_with_rates)
    first, spare = slot.pid, spare_of(slot)

    def measured_by() -> object:
        slot.ready()
        slot.hear()
        return (slot.rates or {}).get("measured_by")

    until(lambda: measured_by() == first)
    assert isinstance(run(slot, "signal 9"), Died)
    assert served_by(slot) == spare
    until(lambda: measured_by() == spare)


def test_rates_that_come_while_a_job_runs_are_no_answer(make: Make) -> None:
    slot = make(opener=opened_with_rates)
    until(lambda: slot._child is not None and slot._child.pipe.wait(0.05))
    assert served_by(slot) == slot.pid
    assert slot.rates == {"measured_by": slot.pid}
