"""A web server for each test of places."""

from collections.abc import Iterator

import pytest

from tests.support.places.web import WebServer, web_server


@pytest.fixture
def web() -> Iterator[WebServer]:
    with web_server() as server:
        yield server
