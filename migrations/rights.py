"""The rights of each database role on each table. `warpfold migrate` grants them after every change of the schema.

`deploy/postgres/roles.sql` makes the roles. Without them one role owns everything, and nothing is granted.
The owner of the tables, `warpfold_migrate`, is the only role that can create, alter, truncate or drop one.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from sqlalchemy import Connection, inspect, text

READ = "select"
ADD = "select, insert"
CHANGE = "select, update"
WRITE = "select, insert, update"
KEEP = "select, insert, update, delete"
NOTHING = ""


@dataclass(frozen=True, slots=True)
class Rights:
    """The privileges of the three roles at work, as SQL lists them."""

    api: str
    dispatcher: str
    worker: str

    def of(self, role: str) -> str:
        """The privileges of one role, by its name in Postgres."""
        return {"warpfold_api": self.api, "warpfold_dispatcher": self.dispatcher, "warpfold_worker": self.worker}[role]


ROLES = ("warpfold_api", "warpfold_dispatcher", "warpfold_worker")
OWNER = "warpfold_migrate"

RIGHTS: Mapping[str, Rights] = MappingProxyType(
    {
        # Users and their tokens. A worker, which runs the users' jobs, sees none of these.
        "users": Rights(api=WRITE, dispatcher="select, delete", worker=NOTHING),
        "tokens": Rights(api=WRITE, dispatcher=NOTHING, worker=NOTHING),
        "sessions": Rights(api=KEEP, dispatcher=NOTHING, worker=NOTHING),
        # Only what is past its time is removed, and not by the process that writes it.
        "audit_log": Rights(api=ADD, dispatcher="select, delete", worker=NOTHING),
        "quotas": Rights(api=KEEP, dispatcher=READ, worker=NOTHING),
        "quota_holds": Rights(api=READ, dispatcher=KEEP, worker=NOTHING),
        "webhook_secrets": Rights(api=WRITE, dispatcher=READ, worker=NOTHING),
        # Jobs. The dispatcher deletes what is old, and the api what its owner deletes.
        "jobs": Rights(api=KEEP, dispatcher="select, update, delete", worker=CHANGE),
        "batches": Rights(api=WRITE, dispatcher="select, update, delete", worker=NOTHING),
        "job_events": Rights(api=ADD, dispatcher=ADD, worker="insert"),
        "idempotency_keys": Rights(api=ADD, dispatcher="select, delete", worker=NOTHING),
        "job_tags": Rights(api="select, insert, delete", dispatcher="select, delete", worker=NOTHING),
        "tag_words": Rights(api=ADD, dispatcher="select, delete", worker=NOTHING),
        "measurements": Rights(api=READ, dispatcher=READ, worker="insert"),
        "workers": Rights(api=CHANGE, dispatcher=READ, worker=WRITE),
        "job_shares": Rights(api="select, insert, delete", dispatcher=NOTHING, worker=NOTHING),
        "job_links": Rights(api="select, insert, delete", dispatcher=NOTHING, worker=NOTHING),
        "batch_shares": Rights(api="select, insert, delete", dispatcher=NOTHING, worker=NOTHING),
        "dataset_shares": Rights(api="select, insert, delete", dispatcher=NOTHING, worker=NOTHING),
        "datasets": Rights(api=KEEP, dispatcher="select, delete", worker=READ),
        "dataset_uses": Rights(api=WRITE, dispatcher=READ, worker=NOTHING),
        "artefacts": Rights(api="select, delete", dispatcher="select, delete", worker=ADD),
        "webhooks": Rights(api=ADD, dispatcher=CHANGE, worker=NOTHING),
        "webhook_attempts": Rights(api=READ, dispatcher=WRITE, worker=NOTHING),
        "counters": Rights(api=WRITE, dispatcher=WRITE, worker=WRITE),
        "uncounted_jobs": Rights(api="insert", dispatcher=KEEP, worker="insert"),
        "turns": Rights(api=READ, dispatcher=WRITE, worker=NOTHING),
        "slot_time": Rights(api=READ, dispatcher=KEEP, worker=WRITE),
        "census_counts": Rights(api=READ, dispatcher=KEEP, worker=NOTHING),
        "queue_lanes": Rights(api=READ, dispatcher=KEEP, worker=NOTHING),
        "queue_room": Rights(api=WRITE, dispatcher=NOTHING, worker=NOTHING),
        "lead": Rights(api=READ, dispatcher=WRITE, worker=NOTHING),
        "alembic_version": Rights(api=READ, dispatcher=READ, worker=READ),
    }
)
"""A row for every table."""

FIXED: Mapping[str, frozenset[str]] = MappingProxyType(
    {
        "jobs": frozenset(
            {
                *("id", "seq", "owner_id", "kind", "small", "parent_id", "spec", "spec_brief"),
                *("work", "batch_id", "batch_index", "request_id", "traceparent", "created_at"),
            }
        )
    }
)
"""Columns that no role may update: whose a job is and what it was asked to do stay as they were accepted."""


SEEN: Mapping[tuple[str, str], frozenset[str]] = MappingProxyType(
    {("datasets", "warpfold_worker"): frozenset({"owner_id", "bytes"})}
)
"""Columns that a role reads of a table, where it reads no others: a worker adds up what the owner of a result holds."""


def grant(connection: Connection) -> None:
    """Give the roles that exist exactly the rights above, on the tables and columns that exist."""
    names = connection.execute(text("select rolname from pg_roles where rolname = any(:roles)"), {"roles": [*ROLES]})
    roles = sorted(names.scalars())
    if not roles:
        return
    schema = inspect(connection)
    for table in sorted(set(schema.get_table_names()) & set(RIGHTS)):
        columns = [column["name"] for column in schema.get_columns(table)]
        for role in roles:
            for statement in _statements(table, role, columns):
                connection.execute(text(statement))


def _statements(table: str, role: str, columns: Iterable[str]) -> Iterable[str]:
    # All names come from this project, so they need no quoting: roles and tables stand above, columns in the schema.
    yield f'revoke all on table "{table}" from {role}'
    for right in filter(None, RIGHTS[table].of(role).split(", ")):
        free = [column for column in columns if column not in FIXED.get(table, ())]
        listed = ", ".join(f'"{column}"' for column in free)
        some = f" ({listed})" if right == "update" and table in FIXED else ""
        if right == "select" and (table, role) in SEEN:
            some = f" ({', '.join(sorted(SEEN[table, role]))})"
        yield f'grant {right}{some} on table "{table}" to {role}'
