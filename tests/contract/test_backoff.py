from warpfold.contract.backoff import Backoff


def test_pauses_double_up_to_the_longest_and_begin_again_after_a_success() -> None:
    pause = Backoff(first=0.1, longest=0.5)
    assert not pause.failing
    assert [pause.next() for _ in range(5)] == [0.1, 0.2, 0.4, 0.5, 0.5]
    assert pause.failing
    pause.reset()
    assert not pause.failing
    assert pause.next() == 0.1


def test_a_very_long_absence_is_still_a_number_of_seconds() -> None:
    pause = Backoff()
    assert max(pause.next() for _ in range(5000)) == 1.0


def test_a_pause_is_spread_where_that_is_asked_for() -> None:
    pauses = []
    for _ in range(200):
        pause = Backoff(first=1.0, longest=8.0, least=0.5)
        pauses.append([pause.next() for _ in range(5)])
    for drawn, longest in zip(zip(*pauses, strict=True), (1.0, 2.0, 4.0, 8.0, 8.0), strict=True):
        assert all(longest / 2 <= pause <= longest for pause in drawn)
        assert len(set(drawn)) > 100, "spread, not one value"


def test_a_pause_is_exact_where_no_spread_is_asked_for() -> None:
    assert {Backoff(first=0.3).next() for _ in range(50)} == {0.3}
