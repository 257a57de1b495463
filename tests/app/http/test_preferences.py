import pytest

from warpfold.app.http.preferences import LONGEST_WAIT_S, applied, seconds_to_wait


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
