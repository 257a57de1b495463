import pytest


@pytest.fixture
def without_timer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever waits for news of a job looks again when told, and not for minutes by themselves."""
    monkeypatch.setattr("warpfold.app.notifications.LOOK_AGAIN_S", 300.0)


@pytest.fixture
def remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who a token belongs to is kept for minutes, unless a change is announced."""
    monkeypatch.setattr("warpfold.app.auth.access._KEPT_S", 300.0)
