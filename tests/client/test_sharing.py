"""Sharing by the client, at a whole service."""

import asyncio

import numpy as np
import pytest

from tests.support.service import Service
from warpfold.app.auth.access_tokens import create_token
from warpfold.app.db import BlockingDatabase
from warpfold.client import AsyncClient, Client, Refused


def test_what_is_shared_is_read_by_others_until_it_is_private_again(service: Service, client: Client) -> None:
    kept = client.upload(np.arange(5.0) + 0.125)
    spec = {"kind": "reduce", "source": {"type": "dataset", "id": kept.id}}
    database = BlockingDatabase(service.settings.database_url, application="test")
    token = database.run(create_token, "grace")
    database.close()
    with Client(service.url, token) as other:
        for readable in (False, True, False):
            sharing = client.share("dataset", kept.id, ["grace"]) if readable else client.unshare("dataset", kept.id)
            assert sharing == client.sharing("dataset", kept.id)
            assert sharing.users == (("grace",) if readable else ())
            if readable:
                assert other.wait(other.submit(spec)).succeeded
            else:
                with pytest.raises(Refused, match="that you may read"):
                    other.submit(spec)


def test_the_client_for_asyncio_shares_a_job_with_everyone(service: Service, client: Client) -> None:
    asyncio.run(_share(service, client.submit_reduce([1.0, 2.0]).id))


async def _share(service: Service, job_id: str) -> None:
    async with AsyncClient(service.url, service.token) as own:
        assert (await own.unshare("job", job_id)).everyone is False
        assert (await own.share("job", job_id, everyone=True)).everyone is True
        assert (await own.sharing("job", job_id)).everyone is True
