"""How often each user and address may ask (token buckets), and what counts as one address."""

import asyncio
import ipaddress
import random
import time
from collections.abc import Callable

from starlette.requests import HTTPConnection

from warpfold.app.fairness.turns import give_up_turn

HEALTH_PATHS = frozenset({b"/healthz", b"/readyz"})

_MOST_KEPT = 10_000


class Buckets:
    """One bucket a key. Each holds at most `burst` tokens and gets `rate` a second.

    Of too many keys the one whose last request is the oldest is forgotten, which is to its advantage.
    """

    def __init__(self, rate: float, burst: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate, self._burst, self._clock = rate, burst, clock
        self._levels: dict[str, tuple[float, float]] = {}  # in the order in which the keys asked last

    def take(self, key: str, count: float = 1.0) -> float:
        """Take `count` tokens. Returns 0, or takes none and returns the seconds until there are enough."""
        now = self._clock()
        level, at = self._levels.pop(key, (self._burst, now))
        level = min(self._burst, level + (now - at) * self._rate)
        wait = 0.0 if level >= count else (count - level) / self._rate
        self._levels[key] = (level if wait else level - count, now)
        if len(self._levels) > _MOST_KEPT:
            del self._levels[next(iter(self._levels))]
        return wait


_A_SECOND = 5.0
_BURST = 50.0
_SLOWED_BY_S = 1.0


class Failures:
    """Failed sign-ins by address: each beyond a few a second is answered one to two seconds later. Successful
    sign-ins are never slowed, for many users share an address."""

    def __init__(self) -> None:
        self._buckets = Buckets(_A_SECOND, _BURST)

    async def note(self, request: HTTPConnection) -> None:
        """Count a failed sign-in, and wait where there were too many."""
        host = request.client.host if request.client is not None else ""
        if self._buckets.take(address_of(host)):
            give_up_turn()
            # Not all at the same moment: those who guess over many connections would come back as one.
            await asyncio.sleep(_SLOWED_BY_S * (1 + random.random()))  # noqa: S311 (not a secret)


def address_of(host: str) -> str:
    """The network that counts as one address: a whole address of IPv4, and of IPv6 the network of 64 bits that one
    customer has."""
    if ":" not in host:
        return host
    try:
        address = ipaddress.IPv6Address(host.partition("%")[0])
    except ValueError:
        return host
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    return str(ipaddress.IPv6Network((int(address) >> 64 << 64, 64)))
