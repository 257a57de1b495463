"""What drills share: real servers, real processes, and a log that all of these processes write to."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.figures import Figures, wanted
from tests.support.ledger import Ledger
from warpfold.app.config import Settings
from warpfold.app.db import BlockingDatabase


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "log"


@pytest.fixture
def figures() -> Figures:
    return wanted()


@pytest.fixture
def ledger(settings: Settings) -> Iterator[Ledger]:
    database = BlockingDatabase(settings.database_url, application="test", pool_size=4)
    yield Ledger(database)
    database.close()
