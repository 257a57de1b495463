"""SQL of sharing: with whom a dataset, a job or a batch is shared. `app.auth.visibility` reads it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from uuid import UUID

from sqlalchemy import ColumnElement, Connection, Table, delete, insert, or_, select, update

from warpfold.app.auth.visibility import Viewer, open_to_all, visible
from warpfold.app.tables.batches import batches
from warpfold.app.tables.jobs import jobs
from warpfold.app.tables.sharing import batch_shares, dataset_shares, job_shares
from warpfold.app.tables.users import datasets, users

_NAMED: Mapping[Table, Table] = MappingProxyType({datasets: dataset_shares, jobs: job_shares, batches: batch_shares})
"""The table of named users of each table of things."""


@dataclass(frozen=True, slots=True)
class Owned:
    """A thing that can be shared: a row of `table`, and its owner."""

    table: Table
    id: UUID | str
    owner_id: int
    owner: str

    @property
    def named(self) -> Table:
        return _NAMED[self.table]

    @property
    def key(self) -> Mapping[str, object]:
        """Its key in the table of named users."""
        if self.table is datasets:
            return {"dataset_id": self.id, "owner_id": self.owner_id}
        return {"job_id" if self.table is jobs else "batch_id": self.id}

    def is_it(self) -> Sequence[ColumnElement[bool]]:
        """The condition on its row."""
        return self.table.c.id == self.id, self.table.c.owner_id == self.owner_id


@dataclass(frozen=True, slots=True)
class SharedWith:
    """With whom something is shared: with everyone, and with the named users in any case."""

    everyone: bool
    users: Sequence[str]


class UnknownUser(ValueError):
    """A name that no user has; `index` is its place among the names."""

    def __init__(self, index: int) -> None:
        super().__init__(index)
        self.index = index


def owned(connection: Connection, table: Table, identity: UUID | str, viewer: Viewer) -> Owned | None:
    """The thing with this id that the viewer sees; of an array the viewer's own entry, or else the oldest one. None
    where there is none."""
    rows = select(table.c.owner_id, users.c.name).join(users, users.c.id == table.c.owner_id)
    rows = rows.where(table.c.id == identity, visible(table, viewer))
    row = connection.execute(rows.order_by(table.c.owner_id != viewer.user_id, table.c.seq).limit(1)).one_or_none()
    return None if row is None else Owned(table, identity, row.owner_id, row.name)


def shared(connection: Connection, thing: Owned, viewer: Viewer) -> SharedWith:
    """With whom a thing is shared."""
    everyone = select(open_to_all(thing.table, viewer)).where(*thing.is_it())
    key = (thing.named.c[name] == value for name, value in thing.key.items())
    names = select(users.c.name).join(thing.named, thing.named.c.user_id == users.c.id).where(*key)
    return SharedWith(
        connection.execute(everyone).scalar_one(), connection.execute(names.order_by(users.c.name)).scalars().all()
    )


def share(connection: Connection, thing: Owned, wanted: SharedWith) -> SharedWith:
    """Share a thing as `wanted`, and with nobody else; what is part of it is shared with it. Raises UnknownUser."""
    known = {
        row.name: row.id
        for row in connection.execute(
            select(users.c.id, users.c.name).where(users.c.name.in_(wanted.users), users.c.removed_at.is_(None))
        )
    }
    for index, name in enumerate(wanted.users):
        if name not in known:
            raise UnknownUser(index)
    connection.execute(update(thing.table).where(*thing.is_it()).values(shared=wanted.everyone))
    if thing.table is not datasets:
        connection.execute(update(jobs).where(_part_of(thing)).values(shared=wanted.everyone))
    connection.execute(delete(thing.named).where(*(thing.named.c[name] == value for name, value in thing.key.items())))
    if known:
        connection.execute(insert(thing.named), [{**thing.key, "user_id": user_id} for user_id in known.values()])
    return SharedWith(wanted.everyone, sorted(known))


def _part_of(thing: Owned) -> ColumnElement[bool]:
    """The jobs of a preset, or those of a batch and of its presets."""
    if thing.table is jobs:
        return jobs.c.parent_id == thing.id
    brought = select(jobs.c.id).where(jobs.c.batch_id == thing.id)
    return or_(jobs.c.batch_id == thing.id, jobs.c.parent_id.in_(brought))
