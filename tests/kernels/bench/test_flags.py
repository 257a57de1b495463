import pytest

from warpfold.kernels.bench.ceiling import Ceiling, memory_peak
from warpfold.kernels.bench.conditions import Conditions
from warpfold.kernels.bench.flags import Flag, flags_of
from warpfold.kernels.bench.stopping import Ending
from warpfold.kernels.bench.summary import summarise

H200 = Ceiling(measured=4.65e12, peak=4.9e12, cached=16.7e12, cache_bytes=60 << 20)
GOOD = Conditions(clock_mhz=1980.0, others=0.0)


def flags(
    seconds: float = 1e-3,
    read_bytes: int = 4_000_000_000,
    *,
    cold: bool = True,
    end: Ending = Ending.CONVERGED,
    before: Conditions = GOOD,
    after: Conditions = GOOD,
    ceiling: Ceiling = H200,
    resolution_s: float = 0.0,
    max_clock_mhz: float | None = 1980.0,
) -> frozenset[Flag]:
    return flags_of(
        summary=summarise([seconds] * 3),
        ending=end,
        read_bytes=read_bytes,
        cold=cold,
        resolution_s=resolution_s,
        ceiling=ceiling,
        looks=(before, after),
        max_clock_mhz=max_clock_mhz,
    )


def test_a_good_measurement_has_no_flags() -> None:
    assert flags() == frozenset()


def test_faster_than_memory_is_suspect() -> None:
    assert flags(seconds=4e9 / 5e12) == {Flag.SUSPECT}
    assert flags(seconds=4e9 / 4.9e12) == frozenset()


def test_one_impossible_sample_is_enough() -> None:
    flags = flags_of(
        summary=summarise([1e-3] * 50 + [1e-6]),
        ending=Ending.CONVERGED,
        read_bytes=4_000_000_000,
        cold=True,
        resolution_s=0.0,
        ceiling=H200,
        looks=(GOOD, GOOD),
        max_clock_mhz=1980.0,
    )
    assert flags == {Flag.SUSPECT}


def test_the_clocks_step_is_allowed_for() -> None:
    too_fast = 4e6 / 5e12
    assert flags(seconds=too_fast, read_bytes=4_000_000) == {Flag.SUSPECT}
    assert flags(seconds=too_fast, read_bytes=4_000_000, resolution_s=5e-7) == frozenset()


def test_hot_data_may_come_from_the_cache_but_not_faster_than_cores_load() -> None:
    small = 40 << 20
    assert flags(seconds=small / 10e12, read_bytes=small, cold=False) == frozenset()
    assert flags(seconds=small / 10e12, read_bytes=small, cold=True) == {Flag.SUSPECT}
    assert flags(seconds=small / 17e12, read_bytes=small, cold=False) == {Flag.SUSPECT}


def test_hot_data_far_larger_than_the_cache_comes_from_memory() -> None:
    large = 5 * (60 << 20)
    assert flags(seconds=large / 5e12, read_bytes=large, cold=False) == {Flag.SUSPECT}


def test_without_a_known_memory_peak_the_cores_bound_it() -> None:
    cpu = Ceiling(measured=30e9, peak=None, cached=2e12, cache_bytes=32 << 20)
    assert flags(seconds=1e-4, read_bytes=10**8, cold=False, ceiling=cpu) == frozenset()
    assert flags(seconds=1e-5, read_bytes=10**8, cold=False, ceiling=cpu) == {Flag.SUSPECT}


def test_more_than_the_measured_ceiling_is_suspect_even_where_physics_would_allow_it() -> None:
    cpu = Ceiling(measured=30e9, peak=None, cached=2e12, cache_bytes=32 << 20)
    assert flags(seconds=1.0, read_bytes=32_000_000_000, ceiling=cpu) == frozenset()
    assert flags(seconds=1.0, read_bytes=34_000_000_000, ceiling=cpu) == {Flag.SUSPECT}


def test_a_ceiling_that_others_disturbed_judges_nothing() -> None:
    low = Ceiling(measured=12e9, peak=None, cached=2e12, cache_bytes=32 << 20, trusted=False)
    assert flags(seconds=1.0, read_bytes=30_000_000_000, ceiling=low) == {Flag.NO_CEILING}
    assert flags(seconds=1e-4, read_bytes=10**8, cold=False, ceiling=low) == frozenset()  # from a cache


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_throttle_reason_at_either_look_counts(when: str) -> None:
    look = Conditions(clock_mhz=1980.0, throttle=("hw_thermal_slowdown",))
    assert flags(**{when: look}) == {Flag.THROTTLED}  # type: ignore[arg-type]


def test_a_clock_below_three_quarters_of_the_highest_counts_as_throttled() -> None:
    assert flags(after=Conditions(clock_mhz=1485.0)) == frozenset()
    assert flags(after=Conditions(clock_mhz=1484.0)) == {Flag.THROTTLED}


def test_a_clock_that_cannot_be_judged_is_not_judged() -> None:
    assert flags(after=Conditions(clock_mhz=100.0), max_clock_mhz=None) == frozenset()
    assert flags(before=Conditions(), after=Conditions()) == frozenset()


def test_another_process_on_the_device_is_contention() -> None:
    assert flags(before=Conditions(others=1.0)) == {Flag.CONTENDED}
    assert flags(after=Conditions(others=0.2)) == frozenset()


@pytest.mark.parametrize("end", [Ending.TIME_LIMIT, Ending.SAMPLE_LIMIT])
def test_a_limit_that_came_first_is_flagged(end: Ending) -> None:
    assert flags(end=end) == {Flag.UNCONVERGED}


def test_the_peak_of_an_h200_follows_from_its_clock_and_bus() -> None:
    assert memory_peak(3201, 6144) == 4_916_736_000_000
