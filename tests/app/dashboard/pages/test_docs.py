import re
from collections.abc import Callable

import pytest

from tests.support.window import Window


@pytest.fixture
def page(window: Callable[[str | None], Window]) -> str:
    return window("ann").get("/docs").text


def test_every_operation_and_every_body_is_on_the_page(window: Callable[[str | None], Window], page: str) -> None:
    document = window("ann").get("/openapi.json").json()
    operations = [about["operationId"] for methods in document["paths"].values() for about in methods.values()]
    shown = set(re.findall(r'<div class="stack" id="([^"]+)"', page))
    assert shown == {*operations, *document["components"]["schemas"]}
    assert "<code>POST /v1/jobs</code> Submit a job" in page
    assert 'Body: <code>application/json</code>, <a href="#ReduceSpec-Input">ReduceSpec-Input</a> or ' in page


def test_every_link_within_the_page_leads_somewhere(page: str) -> None:
    ids = set(re.findall(r' id="([^"]+)"', page))
    assert set(re.findall(r'href="#([^"]+)"', page)) <= ids


def test_nothing_is_loaded_from_elsewhere(page: str) -> None:
    loaded = re.findall(r'<(?:script|link|img)\b[^>]*?(?:src|href)="([^"]+)"', page)
    assert loaded
    assert all(address.startswith("/assets/") for address in loaded)


def test_whoever_is_not_signed_in_is_asked_to_sign_in(window: Callable[[str | None], Window]) -> None:
    answer = window(None).get("/docs")
    assert "/sign-in" in str(answer.url) or answer.headers["location"].startswith("/sign-in")
