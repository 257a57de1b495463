"""Removes arrays that nobody holds: unused ones after a while, and what crashes left behind."""

from datetime import timedelta

from sqlalchemy import Connection

from warpfold.app.datasets import repository
from warpfold.app.datasets.store import Store
from warpfold.app.db import BlockingDatabase

ABANDONED_S = 3600.0


def sweep(connection: Connection, store: Store, dataset_id: str) -> bool:
    """Remove the file of an array if nobody holds it; returns whether nobody did."""
    repository.lock(connection, dataset_id)
    if repository.is_held(connection, dataset_id):
        return False
    store.remove(dataset_id)
    return True


def tidy(database: BlockingDatabase, store: Store, unused_for: timedelta) -> int:
    """End holds on arrays that no job needed for so long, and remove all that nobody holds; returns how many were
    removed."""
    database.run(repository.release_unused, unused_for)
    store.remove_abandoned(ABANDONED_S)
    return sum(database.run(sweep, store, dataset_id) for dataset_id in store.ids(ABANDONED_S))
