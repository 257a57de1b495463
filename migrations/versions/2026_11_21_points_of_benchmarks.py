"""Adds to measurements the device, conditions, interval and outcome of the points of benchmarks."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

_TEXTS = {
    "device_uuid": 64,
    "driver": 32,
    "host": 64,
    "distribution": 32,
    "cache": 8,
    "clock": 64,
}
_NUMBERS = (
    "min_ms",
    "p95_ms",
    "rse",
    "low_ms",
    "high_ms",
    "host_ms",
    "issue_ms",
    "replay_ms",
    "ceiling_gbps",
    "peak_gbps",
    "clock_before_mhz",
    "clock_after_mhz",
    "memory_clock_mhz",
    "temperature_c",
    "power_w",
    "others",
    "relative_error",
)
_OPTIONAL = ("load_ms", "kernel_ms", "correctly_rounded")


def upgrade() -> None:
    # Columns without a default that is computed a row: no row is rewritten, whatever the size of the table.
    for name, length in _TEXTS.items():
        op.add_column("measurements", sa.Column(name, sa.String(length=length)))
    for name in _NUMBERS:
        op.add_column("measurements", sa.Column(name, sa.Double()))
    for name in ("launches", "distinct_values"):
        op.add_column("measurements", sa.Column(name, sa.Integer()))
    for name in ("reason", "value"):
        op.add_column("measurements", sa.Column(name, sa.Text()))
    op.add_column("measurements", sa.Column("outcome", sa.String(length=16), server_default="measured", nullable=False))
    for name, length in (("throttle", 32), ("flags", 16)):
        kind = sa.ARRAY(sa.String(length=length))
        op.add_column("measurements", sa.Column(name, kind, server_default=sa.text("'{}'"), nullable=False))
    for name in _OPTIONAL:
        op.alter_column("measurements", name, nullable=True)


def downgrade() -> None:
    op.execute("delete from measurements where load_ms is null or kernel_ms is null or correctly_rounded is null")
    for name in _OPTIONAL:
        op.alter_column("measurements", name, nullable=False)
    added = (*_TEXTS, *_NUMBERS, "launches", "distinct_values", "reason", "value", "outcome", "throttle", "flags")
    for name in added:
        op.drop_column("measurements", name)
