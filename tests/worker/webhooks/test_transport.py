import asyncio
from collections.abc import Sequence

import pytest

from tests.support.receivers import answer, receiver
from warpfold.worker.webhooks.lookups import Resolve
from warpfold.worker.webhooks.transport import AddressRefused, Transport, Unreachable


def names(*answers: Sequence[str]) -> tuple[Resolve, list[str]]:
    """A name server that gives these answers one after another, and what it was asked."""
    asked: list[str] = []

    async def resolve(owner: int, host: str, port: int) -> Sequence[str]:
        asked.append(host)
        return answers[len(asked) - 1]

    return resolve, asked


def post(url: str, resolve: Resolve, *, allow_private: bool, timeout_s: float = 60.0) -> int:
    async def once() -> int:
        transport = Transport(resolve, allow_private=allow_private, timeout_s=timeout_s)
        return await transport.post(1, url, {"x": "y"}, b"{}")

    return asyncio.run(once())


def test_the_address_that_was_looked_at_is_the_one_that_is_called() -> None:
    with receiver(answer(200)) as target:
        # A second question would get an answer that nothing listens on.
        resolve, asked = names(["127.0.0.1"], ["127.0.0.2"])
        assert post(target.url("hooks.example.org"), resolve, allow_private=True) == 200
        assert asked == ["hooks.example.org"]
        assert target.received[0].headers["host"] == f"hooks.example.org:{target.port}"


@pytest.mark.parametrize(
    "address", ["127.0.0.1", "10.0.0.1", "169.254.169.254", "::1", "fe80::1%lo", "::ffff:127.0.0.1"]
)
def test_a_public_name_with_a_private_address_is_refused(address: str) -> None:
    with receiver(answer(200)) as target:
        resolve, _ = names([address])
        with pytest.raises(AddressRefused, match=r"hooks\.example\.org"):
            post(target.url("hooks.example.org"), resolve, allow_private=False)
        assert target.received == []


def test_of_several_addresses_the_next_is_tried() -> None:
    with receiver(answer(200)) as target:
        resolve, _ = names(["127.0.0.2", "127.0.0.1"])
        assert post(target.url("hooks.example.org"), resolve, allow_private=True) == 200


def test_a_name_that_does_not_exist_is_unreachable() -> None:
    async def resolve(owner: int, host: str, port: int) -> Sequence[str]:
        raise OSError("Name or service not known")

    with pytest.raises(Unreachable, match="not known"):
        post("http://hooks.example.org/", resolve, allow_private=False)


def test_a_receiver_that_does_not_speak_tls_is_unreachable() -> None:
    with receiver(answer(200)) as target:
        resolve, _ = names(["127.0.0.1"])
        with pytest.raises(Unreachable):
            post(target.url("hooks.example.org").replace("http:", "https:"), resolve, allow_private=True, timeout_s=2.0)
