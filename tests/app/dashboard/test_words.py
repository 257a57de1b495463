import pytest

from app.dashboard import words
from app.dashboard.facts import facts_of
from app.dashboard.summary import source_of, summary_of
from app.dashboard.timeline import parts_of


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


@pytest.mark.parametrize(
    ("kind", "spec", "text"),
    [
        (
            "reduce",
            {"op": "sum", "source": {"type": "values", "dtype": "float32", "values": [1]}},
            "sum of 1 value as float32",
        ),
        (
            "reduce",
            {"op": "dot", "source": {"type": "path", "path": "a.npy"}, "other": {"type": "path", "path": "b"}},
            "dot of file a.npy · file b",
        ),
        (
            "benchmark",
            {"ops": ["sum"], "dtypes": ["a", "b", "c", "d"], "sizes": [1000, 1 << 30], "strategies": ["exact"]},
            "sum · a, b, c and 1 more · 10³–2³⁰ · exact",
        ),
        ("later", {"kind": "later", "shape": "round", "deep": {"a": 1}}, 'shape round · deep {"a": 1}'),
        ("later", {}, "later"),
        ("reduce", {}, "None of nothing"),
    ],
)
def test_a_spec_of_any_version_has_one_line(kind: str, spec: dict[str, object], text: str) -> None:
    assert summary_of(kind, spec) == text


def test_a_brief_source_tells_its_count() -> None:
    assert source_of({"type": "values", "dtype": "int8", "count": 5000, "first": [1]}) == "5,000 values as int8"


def test_results_of_kinds_not_known_yet_are_facts_and_tables() -> None:
    found = facts_of("Result", {"a": {"b_ms": 1.5}, "rows": [{"x": 1, "y": {"z": True}}, {"x": 2}], "none": None})
    assert found.rows == [("a b", "1.50 ms"), ("none", "–")]
    [table] = found.tables
    assert (list(table.headings), [list(row) for row in table.rows]) == (["x", "y z"], [["1", "yes"], ["2", "–"]])


def test_a_long_table_says_what_it_leaves_out() -> None:
    [table] = facts_of("", {"rows": [{"x": one} for one in range(1000)]}).tables
    assert len(table.rows) + table.more == 1000


def test_the_parts_of_a_bar_fill_it_and_are_as_wide_as_they_took() -> None:
    parts = parts_of({"queued_ms": 10.0, "load_ms": 20.0, "kernel_ms": 30.0, "total_ms": 90.0})
    assert [(one.name, one.ms) for one in parts] == [("waiting", 10), ("loading", 20), ("kernel", 30), ("other", 40)]
    assert [one.width for one in parts] == pytest.approx([10, 20, 30, 40])
    assert [one.start for one in parts] == pytest.approx([0, 10, 30, 60])


def test_a_short_part_can_still_be_seen_and_no_timings_are_no_bar() -> None:
    parts = parts_of({"queued_ms": 0.001, "total_ms": 1e6})
    assert parts[0].width > 0.3
    assert parts[-1].start + parts[-1].width == pytest.approx(100)
    assert parts_of({}) == []
    assert parts_of({"total_ms": "nonsense"}) == []
