from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from warpfold.contract.id_beginning import is_beginning, range_of_ids


@given(mine=st.uuids(), other=st.uuids(), length=st.integers(4, 36))
def test_the_range_has_the_ids_that_begin_so_and_no_others(mine: UUID, other: UUID, length: int) -> None:
    beginning = str(mine)[:length]
    ids = range_of_ids(beginning)
    assert ids is not None
    first, last = ids
    assert first <= mine <= last
    assert (first <= other <= last) == str(other).startswith(beginning)
    assert range_of_ids(beginning.upper()) == ids


@pytest.mark.parametrize("text", ["", "abc", "zzzz", "abcd\n", "-abcd", "abcd-", "abcdabcdabcd", "0" * 33, "0" * 37])
def test_a_text_with_which_no_id_begins_has_no_range(text: str) -> None:
    assert range_of_ids(text) is None
    assert not is_beginning(text)
