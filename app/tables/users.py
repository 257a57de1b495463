"""The tables of users: their tokens, sessions and quotas, whom the dispatcher makes wait, which arrays they hold, and
what they changed.

The arrays themselves are files (`app.datasets.store`).
"""

from sqlalchemy import (
    JSON,
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    DateTime,
    Double,
    ForeignKey,
    Identity,
    Index,
    Integer,
    LargeBinary,
    String,
    Table,
    func,
)
from sqlalchemy.dialects.postgresql import JSONB

from warpfold.app.tables.schema import metadata

_NOW = func.now()

users = Table(
    "users",
    metadata,
    Column("id", BigInteger, Identity(), primary_key=True),
    Column("name", String(64), nullable=False, unique=True),
    Column("role", String(16), nullable=False),
    Column("created_at", DateTime(timezone=True), nullable=False, server_default=_NOW),
    # A removed user may do nothing; the row stays, and its name with it, until the last of the user's jobs is gone.
    Column("removed_at", DateTime(timezone=True)),
    Column("identity", String(512), unique=True),  # at a provider of OpenID Connect: its issuer, a space, and `sub`
    CheckConstraint("role in ('admin', 'user', 'viewer')", name="role"),
)

tokens = Table(
    "tokens",
    metadata,
    Column("id", BigInteger, Identity(), primary_key=True),
    Column("user_id", ForeignKey("users.id", ondelete="CASCADE"), nullable=False, index=True),
    Column("label", String(64), nullable=False, server_default=""),
    Column("hint", String(16), nullable=False),  # the first characters, to tell tokens apart in a list
    Column("hash", LargeBinary(32), nullable=False, unique=True),
    Column("created_at", DateTime(timezone=True), nullable=False, server_default=_NOW),
    Column("revoked_at", DateTime(timezone=True)),
    Column("expires_at", DateTime(timezone=True)),
    Column("scopes", String(64)),  # words of app.auth.scopes; null: all that the role of the user allows
    Column("made_by", String(64)),  # the name of a user; null: the command on the machine of the service
    Column("last_used_at", DateTime(timezone=True)),  # to the minute
    Column("rotated_at", DateTime(timezone=True)),
    Column("old_hash", LargeBinary(32), unique=True),  # of the secret before the rotation, which holds until then:
    Column("old_until", DateTime(timezone=True)),
)

IN_FORCE = tokens.c.revoked_at.is_(None) & (tokens.c.expires_at.is_(None) | (tokens.c.expires_at > func.now()))
"""Whether a token is neither revoked nor expired."""

sessions = Table(
    "sessions",
    metadata,
    Column("hash", LargeBinary(32), primary_key=True),
    # The token that opened it, or the user whom a provider of OpenID Connect signed in.
    Column("token_id", ForeignKey("tokens.id", ondelete="CASCADE"), index=True),
    Column("user_id", ForeignKey("users.id", ondelete="CASCADE"), index=True),
    Column("created_at", DateTime(timezone=True), nullable=False, server_default=_NOW),
    Column("expires_at", DateTime(timezone=True), nullable=False),
    CheckConstraint("num_nonnulls(token_id, user_id) = 1", name="one_of_both"),
)


quotas = Table(
    "quotas",
    metadata,
    Column("user_id", ForeignKey("users.id", ondelete="CASCADE"), primary_key=True),
    # Null: the limit that the settings give everybody.
    Column("running", Integer),
    Column("queued", Integer),
    Column("gpu_seconds_per_day", Double),
    Column("high_per_hour", Integer),
    CheckConstraint("running >= 0", name="running"),
    CheckConstraint("queued >= 0", name="queued"),
    CheckConstraint("gpu_seconds_per_day >= 0", name="gpu_seconds_per_day"),
    CheckConstraint("high_per_hour >= 0", name="high_per_hour"),
)

# The dispatcher writes it and the api reads it, so that polls learn why a job waits without a search of the queue.
quota_holds = Table(
    "quota_holds",
    metadata,
    Column("user_id", ForeignKey("users.id", ondelete="CASCADE"), primary_key=True),
    Column("quota", String(32), primary_key=True),  # running, gpu_seconds_per_day
    Column("limit", Double, nullable=False),
    Column("until", DateTime(timezone=True)),  # null: until a job ends
)


datasets = Table(
    "datasets",
    metadata,
    Column("id", String(64), primary_key=True),  # SHA-256 of the file: who uploads the same holds the same
    Column("owner_id", ForeignKey("users.id", ondelete="CASCADE"), primary_key=True),
    Column("seq", BigInteger, Identity(), nullable=False, unique=True),  # pages are cut by it
    Column("name", String(128), nullable=False, server_default=""),
    Column("dtype", String(16), nullable=False),
    Column("shape", JSON, nullable=False),
    Column("bytes", BigInteger, nullable=False),  # the size of the file
    Column("shared", Boolean),  # whether everyone sees it; null: it is older than sharing
    Column("created_at", DateTime(timezone=True), nullable=False, server_default=_NOW),
    Column("last_used_at", DateTime(timezone=True), nullable=False, server_default=_NOW),
)
Index("ix_datasets_owner_id_seq", datasets.c.owner_id, datasets.c.seq)
Index("ix_datasets_last_used_at", datasets.c.last_used_at)


# The audit log: who changed what, and from where. Rows are added, and are removed when their time is over.
# Names and not ids: the log outlives the users, keys, jobs and arrays that it names.
audit_log = Table(
    "audit_log",
    metadata,
    Column("id", BigInteger, Identity(), primary_key=True),
    Column("at", DateTime(timezone=True), nullable=False, server_default=func.now(), index=True),
    Column("actor", String(64)),  # the name of a user; null: a command on the machine of the service
    Column("key_id", BigInteger),  # of the key that the actor used, or that opened the session
    Column("address", String(64), nullable=False, server_default=""),
    Column("request_id", String(64)),
    Column("action", String(32), nullable=False),
    Column("thing", String(128), nullable=False, server_default=""),  # an id, or a name
    Column("owner", String(64)),  # whose the thing is
    Column("details", JSONB, nullable=False),
)
Index("ix_audit_log_actor_id", audit_log.c.actor, audit_log.c.id)
Index("ix_audit_log_action_id", audit_log.c.action, audit_log.c.id)
Index("ix_audit_log_thing_id", audit_log.c.thing, audit_log.c.id)
