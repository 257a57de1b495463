import pytest

from warpfold.app.dashboard.pages.job import timeline_of


def test_the_parts_of_a_bar_fill_it_and_are_as_wide_as_they_took() -> None:
    parts = timeline_of({"queued_ms": 10.0, "load_ms": 20.0, "kernel_ms": 30.0, "total_ms": 90.0})
    assert [(one.name, one.ms) for one in parts] == [("waiting", 10), ("loading", 20), ("kernel", 30), ("other", 40)]
    assert [one.width for one in parts] == pytest.approx([10, 20, 30, 40])
    assert [one.start for one in parts] == pytest.approx([0, 10, 30, 60])


def test_a_first_run_shows_how_long_its_kernels_were_prepared() -> None:
    parts = timeline_of({"queued_ms": 10.0, "prepare_ms": 50.0, "load_ms": 10.0, "kernel_ms": 10.0, "total_ms": 90.0})
    named = [("waiting", 10), ("preparing", 50), ("loading", 10), ("kernel", 10), ("other", 20)]
    assert [(one.name, one.ms) for one in parts] == named


def test_a_short_part_can_still_be_seen_and_no_timings_are_no_bar() -> None:
    parts = timeline_of({"queued_ms": 0.001, "total_ms": 1e6})
    assert parts[0].width > 0.3
    assert parts[-1].start + parts[-1].width == pytest.approx(100)
    assert timeline_of({}) == []
    assert timeline_of({"total_ms": "nonsense"}) == []
