"""Room in the queue: how many more jobs of a user may wait.

A submission takes from a number that is never more than the room: only jobs that leave the queue make room, and they
are counted no sooner than the number is used up. So a submission costs the same however many jobs wait, and none goes
beyond the quota (docs/decisions/0022-a-census-and-room).
"""

from dataclasses import dataclass
from typing import Any

from sqlalchemy import (
    CTE,
    BigInteger,
    Connection,
    Select,
    TextClause,
    bindparam,
    column,
    func,
    literal_column,
    select,
    text,
)

from warpfold.app.tables.jobs import in_hand, in_lanes, jobs, still
from warpfold.contract.needs import ALL
from warpfold.contract.states import Status


@dataclass(frozen=True, slots=True)
class Room:
    """The quota of a user, and how many more of their jobs may wait."""

    limit: int
    room: int

    @property
    def used(self) -> int:
        """How many of their jobs wait."""
        return self.limit - self.room


_IN_FORCE = "coalesce((select queued from quotas where user_id = :owner_id), :limit)"
_BINDS = tuple(bindparam(name, type_=BigInteger) for name in ("owner_id", "limit", "takes", "places"))


def taken(*, checked: bool) -> CTE:
    """Take `takes` from the room of `owner_id`, to be part of the statement that stores jobs. If it is `checked`, there
    is a row only where at least `places` are left by the quota, which is `limit` unless the user has one of their own.
    The row stays locked until the transaction ends."""
    enough = f"and queue_room.limit = {_IN_FORCE} and room >= :places" if checked else ""
    taking = text(f"""
        update queue_room set room = room - :takes where owner_id = :owner_id {enough} returning owner_id
    """)  # noqa: S608 - all of it stands here
    binds = _BINDS if checked else (_BINDS[0], _BINDS[2])
    return taking.bindparams(*binds).columns(column("owner_id", BigInteger)).cte("taken")


_TAKE = select(taken(checked=True).c.owner_id)
_TURN: TextClause = text("""
    insert into queue_room as known (owner_id, "limit", room) values (:owner_id, -1, 0)
    on conflict (owner_id) do update set room = known.room
""")
# Both counts go by an index that holds what waits or is in hand, and nothing of the owner's history.
_WAITING: Select[Any] = select(func.count()).where(in_lanes(ALL), jobs.c.owner_id == bindparam("owner_id"))
_AT_HAND: Select[Any] = select(func.count()).where(
    in_hand(), still(Status.QUEUED), jobs.c.owner_id + literal_column("0") == bindparam("owner_id")
)
_USED = select((_WAITING.scalar_subquery() + _AT_HAND.scalar_subquery()).label("used"))
_NOTE: TextClause = text(f"""
    update queue_room set "limit" = {_IN_FORCE}, room = {_IN_FORCE} - :used where owner_id = :owner_id
    returning "limit", room
""").bindparams(*_BINDS[:2], bindparam("used", type_=BigInteger))  # noqa: S608 - all of it stands here


def take_turn(connection: Connection, owner_id: int) -> None:
    """Wait until no other submission of the owner is under way, and keep others waiting until the transaction ends."""
    connection.execute(_TURN, {"owner_id": owner_id})


def take(connection: Connection, owner_id: int, places: int, limit: int) -> bool:
    """Take `places` from the room of a user, whose quota is `limit` unless they have one of their own. False where so
    many are not known to be left: `count` finds out."""
    asked = {"owner_id": owner_id, "limit": limit, "takes": places, "places": places}
    return connection.execute(_TAKE, asked).one_or_none() is not None


def count(connection: Connection, owner_id: int, limit: int) -> Room:
    """Count the jobs of a user that wait, and note the room that is left."""
    take_turn(connection, owner_id)  # the statement that counts begins after it, and so sees all submissions before
    used = connection.execute(_USED, {"owner_id": owner_id}).scalar_one()
    return Room(*connection.execute(_NOTE, {"owner_id": owner_id, "limit": limit, "used": used}).one())
