"""Heavy work has a few places for each user, and some more in all; a place is free again when the work has ended."""

import pytest

from warpfold.app.fairness.places import NoPlace, Places


def test_a_user_has_a_few_places_and_everyone_some_more() -> None:
    places = Places(2, 3)
    with places.taken(1), places.taken(1):
        with pytest.raises(NoPlace) as refused, places.taken(1):
            pass
        assert refused.value.own
        with places.taken(2):
            with pytest.raises(NoPlace) as refused, places.taken(3):
                pass
            assert not refused.value.own
        with places.taken(3):
            pass


def test_a_place_is_free_after_work_that_failed() -> None:
    places = Places(1)
    with pytest.raises(ZeroDivisionError), places.taken(1):
        raise ZeroDivisionError
    with places.taken(1):
        pass
