from warpfold.kernels.bench.conditions import Conditions
from warpfold.kernels.cuda.bench.observer import NvmlObserver


def test_without_a_driver_nothing_is_claimed_to_have_been_seen() -> None:
    observer = NvmlObserver("0000:00:00.0")
    assert observer.before() == Conditions()
    assert observer.max_clock_mhz is None
    assert observer.memory_peak is None
