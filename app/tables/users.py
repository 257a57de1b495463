"""The tables of users, their tokens, and the dashboard's sessions."""

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Column,
    DateTime,
    ForeignKey,
    Identity,
    LargeBinary,
    String,
    Table,
    func,
)

from warpfold.app.tables.schema import metadata

_NOW = func.now()

users = Table(
    "users",
    metadata,
    Column("id", BigInteger, Identity(), primary_key=True),
    Column("name", String(64), nullable=False, unique=True),
    Column("role", String(16), nullable=False),
    Column("created_at", DateTime(timezone=True), nullable=False, server_default=_NOW),
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
)

IN_FORCE = tokens.c.revoked_at.is_(None) & (tokens.c.expires_at.is_(None) | (tokens.c.expires_at > func.now()))
"""Of a token: neither revoked nor expired."""

sessions = Table(
    "sessions",
    metadata,
    Column("hash", LargeBinary(32), primary_key=True),
    Column("token_id", ForeignKey("tokens.id", ondelete="CASCADE"), nullable=False, index=True),
    Column("created_at", DateTime(timezone=True), nullable=False, server_default=_NOW),
    Column("expires_at", DateTime(timezone=True), nullable=False),
)
