"""When a measured ceiling is one."""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from tests.support.kernels.scripted import CEILING, ScriptedObserver
from warpfold.kernels.bench.ceiling import MOST_TRIES, Ceiling, CeilingGauge
from warpfold.kernels.bench.conditions import Conditions
from warpfold.kernels.bench.host import observer
from warpfold.kernels.cuda.bench.ceiling import undisturbed

LOW, LOWER = (replace(CEILING, measured=speed, trusted=False) for speed in (5e11, 3e11))


def gauge(*readings: Ceiling) -> tuple[CeilingGauge, Iterator[Ceiling]]:
    script = iter(readings)
    return CeilingGauge(lambda: next(script)), script


def test_a_trusted_ceiling_is_measured_once() -> None:
    ceiling_gauge, script = gauge(CEILING, LOW)
    assert (ceiling_gauge.read(), ceiling_gauge.read()) == (CEILING, CEILING)
    assert next(script) == LOW


def test_a_disturbed_ceiling_is_measured_again_at_once_and_whenever_it_is_asked_for() -> None:
    ceiling_gauge, _ = gauge(LOWER, LOW, LOWER, LOWER, CEILING)
    assert ceiling_gauge.read() == LOW  # the fastest of three
    assert ceiling_gauge.read() == LOW
    assert ceiling_gauge.read() == CEILING


def test_a_device_that_is_never_quiet_is_given_up() -> None:
    ceiling_gauge, script = gauge(*[LOW] * MOST_TRIES, CEILING)
    assert {ceiling_gauge.read() for _ in range(2 * MOST_TRIES)} == {LOW}
    assert next(script) == CEILING


class Looks(ScriptedObserver):
    def __init__(self, others: float) -> None:
        self.others = others

    def after(self) -> Conditions:
        return Conditions(others=self.others)


@pytest.mark.parametrize(("others", "trusted"), [(0.0, True), (0.2, True), (0.25, False), (1.5, False)])
def test_a_ceiling_of_a_cpu_is_trusted_unless_others_were_at_work_while_it_was_measured(
    others: float, trusted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(observer, "_MEASURE_S", 0.0)
    assert observer.measure_ceiling(Looks(others), 1 << 20).trusted == trusted


ALONE, NEIGHBOUR = Conditions(clock_mhz=1900.0, others=0.0), Conditions(clock_mhz=1900.0, others=1.0)


@pytest.mark.parametrize(
    ("look", "passes", "trusted"),
    [
        (ALONE, [1.0, 1.0, 1.01], True),
        (ALONE, [1.0, 1.3, 1.3], True),
        (NEIGHBOUR, [1.0, 1.0, 1.01], True),  # it is listed, and idle
        (NEIGHBOUR, [1.0, 1.3, 1.3], False),
        (Conditions(clock_mhz=900.0), [1.0, 1.0, 1.0], False),
        (replace(ALONE, throttle=("thermal",)), [1.0, 1.0, 1.0], False),
    ],
)
def test_a_ceiling_of_a_gpu_is_trusted_unless_a_neighbour_works_or_clocks_are_held_down(
    look: Conditions, passes: list[float], trusted: bool
) -> None:
    assert undisturbed([look], passes, 1980.0) == trusted
