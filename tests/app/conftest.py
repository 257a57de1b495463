import pytest


@pytest.fixture
def without_timer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Requests that wait for news of a job look again at a notification, and not for minutes without one."""
    monkeypatch.setattr("warpfold.app.notifications.LOOK_AGAIN_S", 300.0)


@pytest.fixture
def remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who a token belongs to is kept for minutes, unless a change is announced."""
    monkeypatch.setattr("warpfold.app.auth.access._KEPT_S", 300.0)
