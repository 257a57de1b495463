import pytest
from hypothesis import given
from hypothesis import strategies as st

from warpfold.app.http.cursors import cursor_of, key_of
from warpfold.app.http.errors import Invalid


@given(st.integers(0, 2**63 - 1))
def test_a_cursor_gives_its_key_back(key: int) -> None:
    assert key_of("jobs", cursor_of("jobs", key)) == key


def test_no_cursor_is_no_key() -> None:
    assert key_of("jobs", None) is None


def test_a_cursor_of_another_list_is_refused() -> None:
    with pytest.raises(Invalid, match="cursor"):
        key_of("results", cursor_of("jobs", 3))


@given(st.text(max_size=40))
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(Invalid):
        key_of("jobs", text)
