"""Rates of a slot: measured once on a machine, kept, and followed as jobs run."""

import fcntl
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.leases import lease_on
from tests.support.rates import CPU
from warpfold.app.jobs.attempt import Lease
from warpfold.contract.folders import Folders
from warpfold.contract.placement import Placement, RatesView
from warpfold.contract.tasks import TaskSpec, task_spec
from warpfold.kernels.driver import Backend
from warpfold.kernels.machine.rates import Rates
from warpfold.worker import rates
from warpfold.worker.execute import Kernels
from warpfold.worker.rates import SlotRates

MADE = {"kind": "reduce", "op": "sum", "source": {"type": "generate", "distribution": "normal", "n": 1 << 24}}
MEASURED = Rates(**CPU.model_dump())


@pytest.fixture(scope="module")
def kernels() -> Kernels:
    return Kernels("cpu", "here:cpu", Folders((), Path("nowhere")))


class Meter:
    """Stands for the measuring itself, which takes a second: it gives what it is told in two steps."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.runs = 0
        self.fault: Exception | None = None
        monkeypatch.setattr(rates, "measure", self._measure)

    def _measure(self, backend: Backend) -> Iterator[Rates | None]:
        self.runs += 1
        yield None
        if self.fault is not None:
            raise self.fault
        yield MEASURED


@pytest.fixture
def meter(monkeypatch: pytest.MonkeyPatch) -> Meter:
    return Meter(monkeypatch)


def of(kernels: Kernels, folder: Path | None, version: str = "1") -> SlotRates:
    return SlotRates(folder, kernels._device, version)


def measured(kernels: Kernels, folder: Path) -> SlotRates:
    slot = of(kernels, folder)
    for _ in slot.measuring(kernels._backend):
        pass
    return slot


def test_what_was_measured_is_kept_for_the_next_start_on_this_device_with_this_version(
    kernels: Kernels, meter: Meter, tmp_path: Path
) -> None:
    assert of(kernels, tmp_path / "rates").reported is None
    assert measured(kernels, tmp_path / "rates").reported == CPU.model_dump()
    again = measured(kernels, tmp_path / "rates")
    assert (again.reported, meter.runs) == (CPU.model_dump(), 1)
    assert of(kernels, tmp_path / "rates", "2").reported is None


def test_without_a_folder_nothing_is_measured(kernels: Kernels, meter: Meter) -> None:
    assert list(of(kernels, None).measuring(kernels._backend)) == []


def test_measuring_goes_on_where_a_job_interrupted_it(kernels: Kernels, meter: Meter, tmp_path: Path) -> None:
    slot = of(kernels, tmp_path)
    next(slot.measuring(kernels._backend))
    assert slot.reported is None
    next(slot.measuring(kernels._backend))
    assert reported_by(slot) == CPU
    assert meter.runs == 1, "it was not begun anew"


def test_one_slot_of_a_machine_measures_at_a_time(kernels: Kernels, meter: Meter, tmp_path: Path) -> None:
    slot = of(kernels, tmp_path)
    with (tmp_path / "turn.lock").open("wb") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        waiting = slot.measuring(kernels._backend)
        for _ in range(5):
            next(waiting)
        assert slot.reported is None
    assert list(waiting) == [None, None]
    assert slot.reported is not None


def test_an_error_ends_the_measuring_and_nothing_else(kernels: Kernels, meter: Meter, tmp_path: Path) -> None:
    meter.fault = OSError("no space left on device")
    slot = measured(kernels, tmp_path)
    assert slot.reported is None
    assert list(slot.measuring(kernels._backend)) == []


def test_a_child_that_died_of_measuring_does_not_die_of_it_again(
    kernels: Kernels, meter: Meter, tmp_path: Path
) -> None:
    slot = of(kernels, tmp_path)
    slot._mark.touch()
    assert list(slot.measuring(kernels._backend)) == []
    os.utime(slot._mark, (0, 0))
    assert list(slot.measuring(kernels._backend)) == [None, None]


def test_a_broken_file_counts_as_none(kernels: Kernels, meter: Meter, tmp_path: Path) -> None:
    measured(kernels, tmp_path)
    (kept,) = tmp_path.glob("*.json")
    kept.write_text('{"read_gb_per_s": -1}')
    assert of(kernels, tmp_path).reported is None


def result(gb_per_s: float, **changes: Any) -> dict[str, Any]:
    """The result of a job over 128 MiB at this speed, as far as rates are learned from it."""
    milliseconds = (1 << 27) / gb_per_s / 1e6
    stages = {"reduce": {"seconds": 0.1, "bytes": 1 << 27, "gb_per_s": 1.0}}
    timings = {"load_ms": milliseconds / 2, "kernel_ms": milliseconds / 2, "stages": stages}
    return {"dtype": "float64", "strategy": "exact", "timings": timings, **changes}


def spec(**changes: Any) -> TaskSpec:
    return task_spec.validate_python({**MADE, **changes})


def reported_by(slot: SlotRates) -> RatesView:
    return RatesView.model_validate(slot.reported)


def test_rates_follow_the_jobs_that_run(kernels: Kernels, meter: Meter, tmp_path: Path) -> None:
    slot = measured(kernels, tmp_path)
    for _ in range(40):
        slot.learn(spec(), result(10.0))
    assert reported_by(slot).generate_gb_per_s == pytest.approx(10.0, rel=0.1)
    assert reported_by(of(kernels, tmp_path)) == reported_by(slot), "a restart begins with them"
    for _ in range(40):
        slot.learn(spec(source={"type": "path", "path": "x.npy"}), result(30.0))
    assert reported_by(slot).read_gb_per_s == pytest.approx(30.0, rel=0.1)
    assert reported_by(slot).reduce_gb_per_s == CPU.reduce_gb_per_s


@pytest.mark.parametrize(
    ("task", "outcome"),
    [
        (spec(), result(2.4)),  # the file was not in memory, or the machine had other work
        (spec(op="max"), result(50.0)),
        (spec(), result(50.0, dtype="float32")),
        (spec(), result(50.0, strategy="numpy")),
        (spec(source={"type": "values", "values": [1.0]}), result(50.0)),
    ],
)
def test_what_is_no_exact_sum_of_much_float64_at_speed_teaches_nothing(
    kernels: Kernels, meter: Meter, tmp_path: Path, task: TaskSpec, outcome: dict[str, Any]
) -> None:
    slot = measured(kernels, tmp_path)
    for _ in range(20):
        slot.learn(task, outcome)
    assert reported_by(slot) == CPU


def asked(placement: Placement | None = None, **changes: Any) -> Lease:
    source = {"type": "generate", "distribution": "normal", "n": 20_000, "dtype": "float64"}
    text = json.dumps({"kind": "reduce", "op": "sum", "source": source, **changes})
    return lease_on(text, placement=None if placement is None else placement.model_dump_json())


def test_a_result_says_why_the_job_was_sent_to_its_slot(kernels: Kernels) -> None:
    def placed(lease: Lease) -> Any:
        return kernels.run(lease, lambda news: None).result["placement"]

    chosen = Placement(backend="cpu", slot="here:cpu", reason="It ends there first.", predicted={"here:cpu": 0.5})
    assert placed(asked(chosen)) == chosen.model_dump()
    assert placed(asked(backend="cpu")) is None
    assert "not measured yet" in placed(asked())["reason"]
    small = {"type": "values", "values": [1.0, 2.0]}
    assert placed(asked(source=small))["reason"].startswith("The job is small")
    assert placed(asked(source=small, axis=0)) == {
        "backend": "cpu",
        "slot": "here:cpu",
        "reason": "Only CPU slots compute this reduction.",
        "bytes": None,
        "predicted": {},
    }
