from collections.abc import Iterator

import pytest

from tests.support.api import Api, running_api
from tests.support.private_things import PrivateThings, let_all_in, made


@pytest.fixture(scope="module")
def shared(shared_api: Api, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    """An api that all users of private things are let into."""
    folders = {"dataset_dir": tmp_path_factory.mktemp("datasets"), "artefact_dir": tmp_path_factory.mktemp("artefacts")}
    with running_api(shared_api.settings.model_copy(update=folders)) as api:
        let_all_in(api)
        yield api


@pytest.fixture(scope="module")
def things(shared: Api) -> PrivateThings:
    """What belongs to a user and is private."""
    return made(shared)


@pytest.fixture
def without_timer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Requests that wait for news of a job look again at a notification, and not for minutes without one."""
    monkeypatch.setattr("warpfold.app.notifications.LOOK_AGAIN_S", 300.0)


@pytest.fixture
def remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who a token belongs to is kept for minutes, unless a change is announced."""
    monkeypatch.setattr("warpfold.app.auth.access._KEPT_S", 300.0)
