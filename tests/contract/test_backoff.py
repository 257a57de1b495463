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
