"""Headers by which a request says how it wants its answer."""

import pytest

from warpfold.app.http.headers import LONGEST_WAIT_S, applied, preferred, seconds_to_wait

OFFERED = ("application/json", "text/html", "text/markdown")
BROWSER = "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,*/*;q=0.8"


@pytest.mark.parametrize(
    ("accept", "chosen"),
    [
        (None, "application/json"),
        ("", "application/json"),
        ("*/*", "application/json"),
        (BROWSER, "text/html"),
        ("text/markdown", "text/markdown"),
        ("text/*", "text/html"),
        ("text/html;q=0.1, text/markdown;q=0.2", "text/markdown"),
        ("application/json;q=0, */*", "text/html"),
        ("TEXT/HTML", "text/html"),
        ("text/html;level=1;q=0.5, text/markdown;q=0.4", "text/html"),
        ("image/png", None),
        ("text/html;q=0", None),
        ("text/html;q=x", None),
        (";;,,=", None),
    ],
)
def test_the_best_liked_type_is_chosen_and_the_first_offered_of_equals(accept: str | None, chosen: str | None) -> None:
    assert preferred(accept, OFFERED) == chosen


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        (None, None),
        ("", None),
        ("wait=30", 30),
        ("wait=0", 0),
        ("respond-async, wait=10", 10),
        ("respond-async; wait=10; foo", 10),
        ("WAIT = 5", 5),
        ('wait="7"', 7),
        ("wait=99999", LONGEST_WAIT_S),
        ("await=5", None),
        ("wait=5s", None),
        ("wait=-5", None),
    ],
)
def test_wait_is_read_as_rfc_7240_has_it(header: str | None, seconds: int | None) -> None:
    assert seconds_to_wait(header) == seconds


def test_what_was_done_is_said() -> None:
    assert applied(30) == {"Preference-Applied": "wait=30"}
    assert applied(None) == {}
