"""The bytes that a user holds on the service's disk: uploaded arrays and stored results, which one quota limits
together."""

from sqlalchemy import BigInteger, Connection, Text, bindparam, cast, func, literal_column, select

from warpfold.app.tables.artefacts import artefacts
from warpfold.app.tables.users import datasets

_OWNER = bindparam("owner_id", type_=BigInteger)
_NAME = literal_column("'bytes held by '", Text).concat(cast(_OWNER, Text))
# Not a lock of the user's row: a worker has no right to that.
_LOCK = select(func.pg_advisory_xact_lock(func.hashtextextended(_NAME, 0)))
_PARTS = [
    select(func.coalesce(func.sum(table.c.bytes), 0)).where(table.c.owner_id == _OWNER).scalar_subquery()
    for table in (datasets, artefacts)
]
_HELD = select(_PARTS[0] + _PARTS[1])


def lock_holdings(connection: Connection, owner_id: int) -> None:
    """Wait until nothing else is being added to what the user holds, and keep others waiting until the transaction
    ends: two additions cannot share the rest of a quota."""
    connection.execute(_LOCK, {"owner_id": owner_id})


def bytes_held(connection: Connection, owner_id: int) -> int:
    """The bytes of all arrays and stored results of a user."""
    return int(connection.execute(_HELD, {"owner_id": owner_id}).scalar_one())
