"""All connections of one api process: how many there may be, of one address and in all, and how long each may wait."""

import asyncio
from collections import Counter
from dataclasses import dataclass, field
from enum import Enum
from typing import Protocol

import structlog
from structlog.typing import FilteringBoundLogger

from warpfold.app.config import Settings
from warpfold.app.metrics.metrics import ConnectionCounts, Ending

_FOR_HEALTH = 32
"""How many connections above the limit may ask whether the process is well, and nothing else."""

_FOR_OTHERS = 192
"""How many descriptors are no client's connection: those of databases, files, pipes and libraries."""

_MOST_HANDED_OVER = 16
"""How many bodies threads may read at a time, each with 2 MiB of memory. Others come through the event loop."""

_LOOK_EVERY_S = 1.0
_LOG_EVERY_S = 10.0

log: FilteringBoundLogger = structlog.get_logger()


class Phase(Enum):
    """The event that a connection waits for."""

    HEAD = "head"
    BODY = "body"
    ANSWER = "answer"
    IDLE = "idle"
    LEAVING = "leaving"


class Admission(Enum):
    """The verdict on a new connection."""

    ALL = "all"
    HEALTH = "health"
    NOTHING = "nothing"


@dataclass(frozen=True, slots=True)
class Deadlines:
    """Seconds that a client may take: for the head of a request, between two pieces of a body, to its next request, to
    read on."""

    head_s: float
    body_s: float
    idle_s: float
    read_s: float


class ClientConnection(Protocol):
    """One connection, as the others see it."""

    address: str
    phase: Phase

    def look(self, now: float, deadlines: Deadlines) -> None:
        """End the connection if its client took too long."""

    def end(self, why: Ending) -> None:
        """Close the connection: its place is needed."""


@dataclass(slots=True)
class _Group:
    """The connections of one address: all, and those that may be closed without losing an answer, oldest first."""

    all: set[ClientConnection] = field(default_factory=set)
    heads: dict[ClientConnection, None] = field(default_factory=dict)
    idle: dict[ClientConnection, None] = field(default_factory=dict)

    def dispensable(self) -> ClientConnection | None:
        return next(iter(self.heads), None) or next(iter(self.idle), None)


class Connections:
    """Admits connections while there is room, makes room by closing what only waits, and closes what waits too long."""

    def __init__(self, settings: Settings, counts: ConnectionCounts, descriptors: int, idle_s: float) -> None:
        self._most = max(min(settings.max_connections, descriptors - _FOR_OTHERS - _FOR_HEALTH), 16)
        self._most_of_one = settings.max_connections_per_address
        self._deadlines = Deadlines(settings.head_timeout_s, settings.body_timeout_s, idle_s, settings.read_timeout_s)
        self._counts = counts
        self._groups: dict[str, _Group] = {}
        self._total = 0
        self._handed_over = 0
        self._timer: asyncio.TimerHandle | None = None
        self._unsaid: Counter[tuple[str, str]] = Counter()
        self._say_at = 0.0

    def admit(self, connection: ClientConnection, *, is_proxy: bool) -> Admission:
        """Count `connection` in, unless the answer is NOTHING. A proxy stands for many: it is limited in all only."""
        group = self._groups.get(connection.address)
        admission = Admission.ALL
        if group is not None and len(group.all) >= self._most_of_one and not is_proxy:
            if not self._make_room(group, Ending.REPLACED):
                self.note(Ending.ADDRESS_FULL, connection.address)
                return Admission.NOTHING
        elif self._total >= self._most:
            crowded = max(self._groups.values(), key=lambda group: len(group.all))
            if not self._make_room(crowded, Ending.REPLACED):
                self.note(Ending.ALL_FULL, connection.address)
                if self._total >= self._most + _FOR_HEALTH:
                    return Admission.NOTHING
                admission = Admission.HEALTH
        self._groups.setdefault(connection.address, _Group()).all.add(connection)
        self._total += 1
        self._counts.open.set(self._total)
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(_LOOK_EVERY_S, self._look)
        return admission

    def forget(self, connection: ClientConnection) -> None:
        """Count `connection` out: it is closed, or as good as closed."""
        group = self._groups.get(connection.address)
        if group is None or connection not in group.all:
            return
        group.all.discard(connection)
        group.heads.pop(connection, None)
        group.idle.pop(connection, None)
        if not group.all:
            del self._groups[connection.address]
        self._total -= 1
        self._counts.open.set(self._total)

    def turned(self, connection: ClientConnection, phase: Phase) -> None:
        """Note that `connection` waits for something else now."""
        group = self._groups.get(connection.address)
        if group is None or connection not in group.all:
            return
        group.heads.pop(connection, None)
        group.idle.pop(connection, None)
        if phase is Phase.HEAD:
            group.heads[connection] = None
        elif phase is Phase.IDLE:
            group.idle[connection] = None

    def hand_over(self) -> bool:
        """Count a body that a thread is to read; False if there are as many as there may be."""
        if self._handed_over >= _MOST_HANDED_OVER:
            return False
        self._handed_over += 1
        return True

    def take_back(self) -> None:
        """Count a body out that a thread has read."""
        self._handed_over -= 1

    def note(self, why: Ending, address: str) -> None:
        """Count a connection that was ended or refused. The log gets at most one line in ten seconds, so that an attack
        cannot fill the disk."""
        self._counts.ended(why)
        self._unsaid[why.value, address] += 1
        self._say()

    def _say(self) -> None:
        now = asyncio.get_running_loop().time()
        if now < self._say_at:
            return
        (_, address), _ = self._unsaid.most_common(1)[0]
        reasons: Counter[str] = Counter()
        for (why, _), count in self._unsaid.items():
            reasons[why] += count
        log.warning("connections ended or refused", **reasons, mostly_from=address, open=self._total)
        self._unsaid.clear()
        self._say_at = now + _LOG_EVERY_S

    def _make_room(self, group: _Group, why: Ending) -> bool:
        connection = group.dispensable()
        if connection is None:
            return False
        self.note(why, connection.address)
        self.forget(connection)
        connection.end(why)
        return True

    def _look(self) -> None:
        loop = asyncio.get_running_loop()
        now = loop.time()
        for group in list(self._groups.values()):
            for connection in list(group.all):
                connection.look(now, self._deadlines)
        if self._unsaid:
            self._say()
        self._timer = loop.call_later(_LOOK_EVERY_S, self._look) if self._total or self._unsaid else None
