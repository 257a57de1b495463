import pytest

from warpfold.contract import wording


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
    assert wording.duration(ms) == text


@pytest.mark.parametrize(
    ("size", "text"), [(None, "–"), (0, "0 B"), (1023, "1023 B"), (1536, "1.5 KiB"), (150754820096, "140 GiB")]
)
def test_sizes_have_binary_units(size: int | None, text: str) -> None:
    assert wording.size(size) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, "–"), (0, "0"), (float("inf"), "inf"), (4654.3, "4,654"), (0.00001, "1e-05"), (-2.5, "-2.50")],
)
def test_numbers_have_three_digits(value: float | None, text: str) -> None:
    assert wording.number(value) == text


def test_a_part_of_memory_has_the_unit_of_the_whole() -> None:
    assert wording.part_of(2899102925, 25233256448) == "2.7 / 23.5 GiB"
    assert wording.part_of(648347648, 150754820096) == "1 / 140 GiB"


@pytest.mark.parametrize(
    ("value", "text"),
    [(4348.9, "4,350"), (0.12345, "0.123"), (1.0, "1.00"), (1.2e-7, "1.2e-07"), (0.0, "0.0"), (7.61e13, "7.61e+13")],
)
def test_three_digits_are_significant(value: float, text: str) -> None:
    assert wording.significant(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "–"),
        (0.0, "0"),
        (4348.9, "4,350"),
        (0.12, "0.12"),
        (1.0, "1"),
        (1.2e-7, "1.20e-07"),
        (0.00015, "1.50e-04"),
        (2e7, "2.00e+07"),
    ],
)
def test_figures_of_a_table_are_short(value: float | None, text: str) -> None:
    assert wording.figure(value) == text


def test_what_a_table_lacks_is_a_dash() -> None:
    assert {wording.percent(None), wording.times(None), wording.milliseconds(None), wording.yes_or_no(None)} == {"–"}


@pytest.mark.parametrize(
    ("n", "text"), [(7, "7"), (1500, "1,500"), (10**7, "10⁷"), (20_000, "2·10⁴"), (1 << 30, "2³⁰"), (1024, "2¹⁰")]
)
def test_a_power_is_written_as_one(n: int, text: str) -> None:
    assert wording.compact_count(n) == text


def test_one_has_no_plural() -> None:
    assert [wording.number_of("row", count) for count in (0, 1, 2, 12345)] == [
        "0 rows",
        "1 row",
        "2 rows",
        "12,345 rows",
    ]
