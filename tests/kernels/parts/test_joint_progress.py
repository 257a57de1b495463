"""The progress of several devices that share one reduction."""

from warpfold.kernels.parts.joint_progress import JointProgress


def test_the_shares_of_all_devices_add_up() -> None:
    reports: list[tuple[int, int]] = []
    together = JointProgress(100, lambda *now: reports.append(now))
    first, second = together.beside(0), together.beside(1)
    assert first is not None
    assert second is not None
    first(10, 50)
    second(30, 50)
    first(40, 50)
    together.end(0, 50)
    second(45, 50)
    assert reports == [(10, 100), (40, 100), (70, 100), (95, 100)]


def test_no_more_is_told_than_there_is() -> None:
    reports: list[tuple[int, int]] = []
    together = JointProgress(10, lambda *now: reports.append(now))
    beside = together.beside("a share that is longer than was thought")
    assert beside is not None
    beside(12, 12)
    assert reports == [(10, 10)]


def test_nobody_is_told_where_nobody_asks() -> None:
    assert JointProgress(10, None).beside(0) is None
