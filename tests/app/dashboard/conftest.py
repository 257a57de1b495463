from collections.abc import Callable, Iterator

import pytest

from tests.support.api import Api
from tests.support.window import Window


@pytest.fixture
def window(api: Api) -> Iterator[Callable[[str | None], Window]]:
    """Opens a window that is signed in as a user of the api, or as nobody."""
    opened: list[Window] = []

    def begin(user: str | None = "ann") -> Window:
        opened.append(Window(api))
        return opened[-1] if user is None else opened[-1].sign_in(user)

    yield begin
    for browser in opened:
        browser.close()


@pytest.fixture
def ann(window: Callable[[str], Window]) -> Window:
    return window("ann")
