import pytest

from warpfold.app.http.headers import preferred

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
