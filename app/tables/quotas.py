"""The tables of quotas: what an administrator set for a user, and whom the dispatcher makes wait."""

from sqlalchemy import CheckConstraint, Column, DateTime, Double, ForeignKey, Integer, String, Table

from warpfold.app.tables.schema import metadata

quotas = Table(
    "quotas",
    metadata,
    Column("user_id", ForeignKey("users.id", ondelete="CASCADE"), primary_key=True),
    # Null: what the settings say for everybody.
    Column("running", Integer),
    Column("queued", Integer),
    Column("gpu_seconds_per_day", Double),
    Column("high_per_hour", Integer),
    CheckConstraint("running >= 0", name="running"),
    CheckConstraint("queued >= 0", name="queued"),
    CheckConstraint("gpu_seconds_per_day >= 0", name="gpu_seconds_per_day"),
    CheckConstraint("high_per_hour >= 0", name="high_per_hour"),
)

# Written by the dispatcher, read by the api, which so can say why a job waits without working it out for each poll.
quota_holds = Table(
    "quota_holds",
    metadata,
    Column("user_id", ForeignKey("users.id", ondelete="CASCADE"), primary_key=True),
    Column("quota", String(32), primary_key=True),  # running, gpu_seconds_per_day
    Column("limit", Double, nullable=False),
    Column("until", DateTime(timezone=True)),  # null: until a job ends
)
