"""Jobs whose results are stored."""

import shutil
from collections.abc import Callable
from typing import Any
from uuid import UUID

import psycopg
import pytest

from tests.support.api import Api
from tests.support.artefacts import keep, written


@pytest.fixture
def store_result(api: Api) -> Callable[..., UUID]:
    """Make a job of Ann's (or of `user`) with a stored result; its id."""

    def make(values: Any, dtype: str = "float64", counts: Any = None, user: str = "ann") -> UUID:
        lease = api.claim(api.submit(user))
        keep(api, lease, written(api, lease, values, dtype, counts))
        return lease.job_id

    return make


@pytest.fixture(autouse=True)
def nothing_held(shared_api: Api, sweeper: psycopg.Connection) -> None:
    """Nothing is left of the tests before, whose api this is, too: no stored result, and no array that counts with
    them."""
    shutil.rmtree(shared_api.settings.artefacts_dir(), ignore_errors=True)
    sweeper.execute("delete from jobs")
    sweeper.execute("delete from datasets")
