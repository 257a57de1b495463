from warpfold.app.fairness.rates import Buckets


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_a_bucket_gives_its_burst_at_once_and_its_rate_after_that() -> None:
    clock = Clock()
    buckets = Buckets(10.0, 5.0, clock)
    assert [buckets.take("a") for _ in range(5)] == [0.0] * 5
    assert buckets.take("a") == 0.1
    clock.now = 0.1
    assert buckets.take("a") == 0.0
    assert buckets.take("a") > 0


def test_one_bucket_is_not_anothers() -> None:
    buckets = Buckets(1.0, 1.0, Clock())
    assert buckets.take("a") == 0.0
    assert buckets.take("a") > 0
    assert buckets.take("b") == 0.0


def test_keys_without_end_take_no_memory_without_end() -> None:
    buckets = Buckets(1.0, 1.0, Clock())
    for index in range(30_000):
        buckets.take(str(index))
    assert len(buckets._levels) <= 10_001


def test_a_key_that_keeps_asking_is_not_forgotten_for_many_others() -> None:
    buckets = Buckets(1.0, 1.0, Clock())
    buckets.take("a")
    for index in range(30_000):
        buckets.take(str(index))
        assert index % 5000 or buckets.take("a") > 0


def test_a_bucket_does_not_fill_beyond_its_burst() -> None:
    clock = Clock()
    buckets = Buckets(10.0, 2.0, clock)
    clock.now = 1000.0
    assert [buckets.take("a") == 0 for _ in range(3)] == [True, True, False]
