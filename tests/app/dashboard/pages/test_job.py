import pytest

from tests.support.api import RESULT, Api
from tests.support.window import Window
from warpfold.app.dashboard.pages.job import timeline_of
from warpfold.contract.artefact import Artefact
from warpfold.contract.kinds.groupby import GroupbyResult
from warpfold.contract.kinds.reduce import ReduceArrayResult, ReduceResult


def test_the_parts_of_a_bar_fill_it_and_are_as_wide_as_they_took() -> None:
    parts = timeline_of({"queued_ms": 10.0, "load_ms": 20.0, "kernel_ms": 30.0, "total_ms": 90.0})
    assert [(part.name, part.ms) for part in parts] == [("waiting", 10), ("loading", 20), ("kernel", 30), ("other", 40)]
    assert [part.width for part in parts] == pytest.approx([10, 20, 30, 40])
    assert [part.start for part in parts] == pytest.approx([0, 10, 30, 60])


def test_a_first_run_shows_how_long_its_kernels_were_prepared() -> None:
    parts = timeline_of({"queued_ms": 10.0, "prepare_ms": 50.0, "load_ms": 10.0, "kernel_ms": 10.0, "total_ms": 90.0})
    named = [("waiting", 10), ("preparing", 50), ("loading", 10), ("kernel", 10), ("other", 20)]
    assert [(part.name, part.ms) for part in parts] == named


def test_a_short_part_can_still_be_seen_and_no_timings_are_no_bar() -> None:
    parts = timeline_of({"queued_ms": 0.001, "total_ms": 1e6})
    assert parts[0].width > 0.3
    assert parts[-1].start + parts[-1].width == pytest.approx(100)
    assert timeline_of({}) == []
    assert timeline_of({"total_ms": "nonsense"}) == []


@pytest.mark.parametrize(
    ("meaning", "headline", "fact"),
    [
        ({"decimal": "9007199254740993.10", "value": 9007199254740993.0}, "9007199254740993.10", "9007199254740992.0"),
        (
            {"time": {"iso": "2026-11-21", "unit": "D", "timezone": None, "exact": None}, "value": 20778, "hex": None},
            "2026-11-21",
            "20,778",
        ),
    ],
)
def test_the_answer_of_a_decimal_or_a_date_is_what_its_value_stands_for(
    ann: Window, api: Api, meaning: dict[str, object], headline: str, fact: str
) -> None:
    job = api.submit()
    api.finish(api.claim(job), {**RESULT, **meaning})
    shown = ann.get(f"/jobs/{job}").text
    assert f'<p class="answer" id="value">{headline}</p>' in shown
    assert f"<dd>{fact}</dd>" in shown


def test_an_array_of_values_is_a_table_with_links_to_all_of_them(ann: Window, api: Api) -> None:
    job = api.submit()
    example = ReduceArrayResult.model_json_schema()["examples"][0]
    api.finish(api.claim(job), {**example, "values": [2.5, None], "hex": ["0x1.4p+1", None]})
    table = ann.get(f"/jobs/{job}/measured").text
    for part in ("sum by turned_columns (exact), float64, 2", "0x1.4p+1", f"/v1/jobs/{job}/result?format=csv"):
        assert part in table
    assert "turned_columns" in ann.get(f"/jobs/{job}").text
    assert "0x1.4p+1" in ann.get(f"/v1/reports/{job}", headers={"Accept": "text/markdown"}).text


def test_a_stored_result_shows_its_first_rows_and_links_to_every_format(ann: Window, api: Api) -> None:
    job = api.submit()
    example = ReduceArrayResult.model_json_schema()["examples"][0]
    stored = {**Artefact.model_json_schema()["examples"][0], "href": f"/v1/jobs/{job}/artefact"}
    nothing = {"values": None, "hex": None, "counts": None}
    api.finish(api.claim(job), {**example, **nothing, "shape": [20_000], "artefact": stored})
    table = ann.get(f"/jobs/{job}/measured").text
    for part in ("0x1.c000000000000p+2", "The first 2 of 20,000 rows; all of them are stored, 160,128 bytes."):
        assert part in table
    for format in ("npy", "arrow", "parquet", "csv"):
        assert f'href="/v1/jobs/{job}/artefact?format={format}" download="{job}.{format}"' in table
    page = ann.get(f"/jobs/{job}").text
    assert "turned_columns" in page
    assert "count each" not in page
    assert "20,000 rows" in ann.get(f"/v1/reports/{job}", headers={"Accept": "text/markdown"}).text


def test_groups_are_a_table_and_bars(ann: Window, api: Api) -> None:
    job = api.submit()
    api.finish(api.claim(job), GroupbyResult.model_json_schema()["examples"][0])
    shown = ann.get(f"/jobs/{job}/measured").text
    for part in ("2 groups of 3 rows (exact)", "1.0000000000000002e+16", f"/v1/jobs/{job}/result?format=csv"):
        assert part in shown
    assert "Bars of sum by region, 2 groups: from 2.5 (south) to 1e+16 (north)." in shown


def test_a_page_says_why_a_job_ran_where_it_did_and_what_was_predicted(ann: Window, api: Api) -> None:
    job = api.submit()
    example = ReduceResult.model_json_schema()["examples"][0]
    placement = {
        "backend": "cpu",
        "slot": "gpu1:cpu",
        "reason": "gpu1:cpu was predicted to end it first.",
        "bytes": 8 << 30,
        "predicted": {"gpu1:cuda:0": 0.227, "gpu1:cpu": 0.172},
    }
    api.finish(api.claim(job), {**example, "placement": placement})
    shown = ann.get(f"/jobs/{job}").text
    card = shown[shown.index('id="placement"') : shown.index('id="events-title"')]
    assert "gpu1:cpu was predicted to end it first." in card
    assert card.index("<b>gpu1:cpu</b>") < card.index("172 ms") < card.index("gpu1:cuda:0") < card.index("227 ms")
    assert "8.59 G" in card or "8,589,934,592" in card
    without = api.submit()
    api.finish(api.claim(without), {**example, "placement": None})
    assert 'id="placement"' not in ann.get(f"/jobs/{without}").text
