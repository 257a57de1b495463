"""All tables, one file for each concept, so that `metadata` is whole for migrations and tests.

The tables lie below all other folders, because the SQL of one folder reads the tables of others.
"""

from warpfold.app.tables import (
    artefacts,
    batches,
    dataset_uses,
    jobs,
    measurements,
    queue,
    service,
    sharing,
    users,
    webhooks,
)
from warpfold.app.tables.schema import metadata

__all__ = [
    "artefacts",
    "batches",
    "dataset_uses",
    "jobs",
    "measurements",
    "metadata",
    "queue",
    "service",
    "sharing",
    "users",
    "webhooks",
]
