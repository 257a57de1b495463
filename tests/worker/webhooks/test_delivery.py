from warpfold.worker.webhooks.delivery import DAY, pause_after


def test_a_delivery_is_tried_for_about_a_day() -> None:
    assert 20 * 3600 < sum(DAY) < 26 * 3600
    assert list(DAY) == sorted(DAY)


def test_pauses_grow_vary_by_a_fifth_and_end() -> None:
    for number, pause in enumerate(DAY, 1):
        pauses = {pause_after(number) for _ in range(50)}
        assert len(pauses) > 1
        assert all(actual is not None and 0.8 * pause <= actual <= 1.2 * pause for actual in pauses)
    assert pause_after(len(DAY) + 1) is None
