import json
from pathlib import Path

import pytest

from tests.support.shell import Shell

GENERATED = ("submit", "--generate", "normal", "--dry-run", "--n")


@pytest.mark.parametrize(
    ("text", "count"),
    [("1e6", 10**6), ("1.5e1", 15), ("0", 0), ("9007199254740993", 2**53 + 1), ("1_000", 1000), ("2E3", 2000)],
)
def test_a_count_is_read_exactly(tmp_path: Path, text: str, count: int) -> None:
    assert json.loads(Shell(tmp_path).run(*GENERATED, text).out)["source"]["n"] == count


@pytest.mark.parametrize("text", ["1.5", "1e-1", "nan", "inf", "many", "", "1e99999999", "1e20"])
def test_what_is_no_whole_number_is_refused_with_the_name_of_the_option(tmp_path: Path, text: str) -> None:
    refused = Shell(tmp_path).run(*GENERATED, text)
    assert refused.code == 2
    assert f"Invalid value for '--n': {text!r} is not a whole number, such as 1000 or 1e6" in refused.err


@pytest.mark.parametrize(
    ("words", "option"),
    [
        ((*GENERATED, "-1"), "'--n': '-1' is less than 0"),
        (("jobs", "--limit", "0"), "'--limit' / '-n': '0' is less than 1"),
        (("results", "--n-min", "1.5"), "'--n-min': '1.5' is not a whole number"),
    ],
)
def test_every_count_has_its_bound(tmp_path: Path, words: tuple[str, ...], option: str) -> None:
    refused = Shell(tmp_path).run(*words)
    assert (refused.code, option in refused.err) == (2, True), refused.err
