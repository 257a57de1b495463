"""Jobs as rows of the dashboard's tables."""

import re

import pytest

from tests.support.api import RESULT, Api
from tests.support.waiting import until
from tests.support.window import Window
from warpfold.app.dashboard.values import answer_in_words, in_brief


def test_a_long_path_is_shown_by_its_beginning_and_its_end(ann: Window, api: Api) -> None:
    folders = "a-long-name-of-a-simulation/" * 40
    job = api.submit(source={"type": "path", "path": f"{folders}pressure.npy"})
    line = f"sum of file {folders}"[:100]
    for path in ("/jobs", f"/jobs/{job}"):
        text = ann.get(path).text
        assert f"{line} … " in text, path
        assert "-simulation/pressure.npy" in text


@pytest.mark.parametrize(
    ("result", "answer", "brief"),
    [
        ('{"value": -0.0, "hex": "-0x0.0p+0"}', "-0.0", "-0.0"),
        ('{"value": -2.2250738585072014e-308}', "-2.2250738585072014e-308", "-2.2250738585072014e-308"),
        ('{"value": "nan"}', "nan", "nan"),
        ('{"value": null}', "null", "null"),
        ('{"value": true}', "true", "true"),
        ('{"value": 9007199254740993}', "9007199254740993", "9007199254740993"),
        (f'{{"value": {10**40}}}', str(10**40), "1000000000000…000000000000"),
        ('{"value": {"re": 1.5, "im": -2.0}}', "1.5 + -2.0 i", "1.5 + -2.0 i"),
        ('{"value": 0.1, "decimal": "0.10"}', "0.10", "0.10"),
        ('{"value": 86400, "time": {"iso": "1970-01-02T00:00:00"}}', "1970-01-02T00:00:00", "1970-01-02T00:00:00"),
        ('{"study": "three_numbers", "exact": 0.5}', "0.5", "0.5"),
        ('{"shape": [3, 4000], "values": null}', "3 × 4,000 values", "3 × 4,000 values"),
        ('{"shape":[1],"values":[2.0]}', "1 value", "1 value"),
        ('{"groups": 12000, "keys": []}', "12,000 groups", "12,000 groups"),
        ('{"groups": 1, "keys": []}', "1 group", "1 group"),
    ],
)
def test_a_result_is_said_in_a_line(result: str, answer: str, brief: str) -> None:
    assert answer_in_words(result) == answer
    assert in_brief(answer) == brief


@pytest.mark.parametrize(
    "result", ['{"study": "accuracy", "points": []}', '{"jobs": []}', f'{{"x": "{"y" * 99_999}"}}']
)
def test_an_answer_that_is_no_line_is_left_to_the_page_of_the_job(result: str) -> None:
    assert answer_in_words(result) is None


def test_the_list_has_the_value_of_a_job_that_succeeded(ann: Window, api: Api) -> None:
    def values() -> list[str]:
        return re.findall(r'<td class="value figure">(.*?)</td>', ann.get("/live/jobs").text)

    job = api.submit()
    assert values() == [""]
    api.finish(api.claim(job), result={**RESULT, "value": 0.1, "decimal": "0.1" + 40 * "0"})
    until(lambda: values() == [f'<span title="0.1{40 * "0"}">0.10000000000…000000000000</span>'])
