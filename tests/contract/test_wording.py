import pytest

from warpfold.contract import wording as words


@pytest.mark.parametrize(
    ("ms", "text"),
    [
        (None, "–"),
        (0.0005, "500 ns"),
        (0.0051, "5.10 µs"),
        (1.0, "1.00 ms"),
        (999.4, "999 ms"),
        (1500, "1.50 s"),
        (61_000, "1 min 01 s"),
        (3_723_000, "1 h 02 min"),
    ],
)
def test_durations_have_the_unit_that_suits_them(ms: float | None, text: str) -> None:
    assert words.milliseconds(ms) == text


@pytest.mark.parametrize(
    ("size", "text"), [(None, "–"), (0, "0 B"), (1023, "1023 B"), (1536, "1.5 KiB"), (150754820096, "140 GiB")]
)
def test_sizes_have_binary_units(size: int | None, text: str) -> None:
    assert words.size(size) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, "–"), (0, "0"), (float("inf"), "inf"), (4654.3, "4,654"), (0.00001, "1e-05"), (-2.5, "-2.50")],
)
def test_numbers_have_three_digits(value: float | None, text: str) -> None:
    assert words.number(value) == text


def test_a_part_of_memory_has_the_unit_of_the_whole() -> None:
    assert words.part_of(2899102925, 25233256448) == "2.7 / 23.5 GiB"
    assert words.part_of(648347648, 150754820096) == "1 / 140 GiB"


def test_names_between_backticks_become_code_and_html_stays_text() -> None:
    assert words.coded("a `<b>` & c") == "a <code>&lt;b&gt;</code> &amp; c"
