"""The database's schema, one dated file a change: `upgrade(url)`, or `alembic` with WARPFOLD_DATABASE_URL set."""

from pathlib import Path

from alembic import command
from alembic.config import Config


def upgrade(database_url: str, revision: str = "head") -> None:
    """Bring the database at `database_url` to `revision`.

    Safe to call from several processes at once: they take turns. Raises ValueError without a url, and
    OperationalError when a lock on a table was not to be had within the lock timeout; then nothing has changed.
    """
    if not database_url:
        raise ValueError("there is no database to migrate: the url is empty")
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent).replace("%", "%%"))
    config.attributes["database_url"] = database_url
    command.upgrade(config, revision)
