from warpfold.app.dashboard.rendering import coded


def test_names_between_backticks_become_code_and_html_stays_text() -> None:
    assert coded("a `<b>` & c") == "a <code>&lt;b&gt;</code> &amp; c"
