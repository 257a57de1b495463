import pytest

from warpfold.kernels.bench.summary import summarise
from warpfold.kernels.scaling.axes import Algorithm, Method, Mode, Scaling
from warpfold.kernels.scaling.judge import TimedRuns, judged, phases_of
from warpfold.kernels.scaling.local_ranks import Timing
from warpfold.kernels.scaling.records import MessageRecord
from warpfold.kernels.scaling.study import ArrayCase, MessageCase
from warpfold.kernels.studies.outcome import Outcome


def case(scaling: Scaling = Scaling.STRONG, *, ranks: int = 2, n: int = 1000) -> ArrayCase:
    return ArrayCase(scaling, Method.EXACT, Mode.ONE_PROCESS, Algorithm.RING, ranks, n)


def timings(*ranks: tuple[float, float], runs: int = 20) -> list[list[Timing]]:
    """Each rank's (local, communication) in seconds, the same in every run."""
    return [[Timing(local, communication, local + communication)] * runs for local, communication in ranks]


def runs(*ranks: tuple[float, float], same_bits: bool | None = True) -> TimedRuns:
    return TimedRuns(timings(*ranks), [0.01], 1.5, same_bits)


def test_a_run_lasts_until_its_slowest_rank_and_communication_is_what_the_last_to_come_needs() -> None:
    phases = phases_of(timings((0.010, 0.005), (0.012, 0.003)))
    assert phases.local.median == 0.012
    assert phases.communication.median == 0.003
    assert phases.total.median == pytest.approx(0.015)


def test_strong_scaling_compares_times_and_weak_scaling_what_is_done_in_them() -> None:
    alone = summarise([0.020] * 20)
    strong = judged(case(), runs((0.010, 0.001), (0.010, 0.001)), 4, alone)
    assert strong.speedup == pytest.approx(20 / 11)
    assert strong.efficiency == pytest.approx(10 / 11)
    assert strong.gb_per_s == pytest.approx(4000 / 0.011 / 1e9)
    weak = judged(case(Scaling.WEAK), runs((0.020, 0.001), (0.020, 0.001)), 4, alone)
    assert weak.speedup == pytest.approx(2 * 20 / 21)
    assert weak.suspect is None


def test_times_are_given_in_milliseconds_and_by_rank() -> None:
    point = judged(case(), runs((0.010, 0.005), (0.012, 0.003)), 4, summarise([0.02] * 20))
    assert [(rank.rank, rank.local_ms, rank.communication_ms) for rank in point.times] == [(0, 10, 5), (1, 12, 3)]
    assert (point.local_ms, point.communication_ms, point.host_ms, point.samples) == (12, 3, 10, 20)
    assert (point.value, point.hex) == (1.5, "0x1.8000000000000p+0")


def test_one_rank_is_its_own_baseline_and_communicates_with_nobody() -> None:
    point = judged(case(ranks=1), runs((0.02, 1e-7)), 4, None)
    assert (point.speedup, point.efficiency, point.communication_ms) == (1.0, 1.0, 0.0)


def test_more_than_a_rank_can_do_is_suspect_and_says_why() -> None:
    """The course report's 47.52 times on two GPUs."""
    alone = summarise([14.6031e-3] * 20)
    point = judged(case(), runs((0.2e-3, 0.1073e-3), (0.2e-3, 0.1073e-3)), 4, alone)
    assert point.speedup == pytest.approx(47.52, abs=0.01)
    assert point.outcome is Outcome.MEASURED
    assert point.suspect is not None
    assert "2 ranks cannot be 47.52 times as fast as one" in point.suspect
    assert "beyond the samples' scatter" in point.suspect


def test_a_hair_too_fast_is_suspect_too_but_the_scatter_is_named() -> None:
    alone = summarise([0.0200 + 0.0001 * (k % 5) for k in range(40)])
    fast = [[Timing(t, 0.0001, t + 0.0001) for t in (0.0098 + 0.0001 * (k % 5) for k in range(40))]] * 2
    point = judged(case(), TimedRuns(fast, [0.01], 1.5, True), 4, alone)
    assert point.speedup is not None
    assert point.suspect is None or "scatter of the samples explains" in point.suspect
    assert (point.suspect is not None) == (point.speedup > 2)


def test_negative_communication_is_suspect() -> None:
    """The course report's −0.4336 ms."""
    point = judged(case(), runs((0.7514e-3, -0.4336e-3), (0.7514e-3, -0.4336e-3)), 4, summarise([1.5028e-3] * 20))
    assert point.suspect is not None
    assert "a time is negative" in point.suspect


def test_other_bits_than_one_ranks_are_suspect() -> None:
    point = judged(case(), runs((0.01, 0.001), (0.01, 0.001), same_bits=False), 4, summarise([0.02] * 20))
    assert point.suspect is not None
    assert "other bits" in point.suspect


def test_without_a_baseline_there_is_no_speedup() -> None:
    point = judged(case(), runs((0.01, 0.001), (0.01, 0.001)), 4, None)
    assert (point.speedup, point.efficiency, point.baseline_ms) == (None, None, None)
    assert point.total_ms == pytest.approx(11)


@pytest.mark.parametrize(("ranks", "factor"), [(2, 1.0), (4, 1.5), (8, 1.75)])
def test_bandwidths_are_those_of_nccl_tests(ranks: int, factor: float) -> None:
    message = MessageCase(Mode.ONE_PROCESS, Algorithm.TREE, ranks, 1_000_000)
    record = MessageRecord.timed(message, 140, 1e-3, correct=True)
    assert record.time_us == 1000
    assert record.algbw_gbps == pytest.approx(1.0)
    assert record.busbw_gbps == pytest.approx(factor)
