"""Values of results in words."""

import pytest

from warpfold.app.dashboard.values import answer_in_words, in_brief


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
