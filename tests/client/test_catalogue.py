"""The catalogue by the client, at a whole service."""

from tests.support.service import Service
from warpfold.client import (
    Client,
)


def test_the_catalogue_says_what_there_is(client: Client, service: Service) -> None:
    assert "norm2" in [op.name for op in client.ops()]
    assert "exact" in [strategy.name for strategy in client.strategies()]
    assert client.presets()[0].jobs >= 1
    [device] = client.devices()
    [worker] = client.workers()
    assert device.live
    assert worker.backend == device.device["backend"] == "cpu"
    assert client.whoami().name == "ada"
    assert repr(client) == f"Client('{service.url}')"
