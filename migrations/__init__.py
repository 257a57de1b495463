"""The database's schema has a dated file for each change. `upgrade(url)` applies them, or `alembic` with
WARPFOLD_DATABASE_URL set."""

from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.util import CommandError


class UnknownSchema(ValueError):
    """The database has a schema that no migration knows."""


def upgrade(database_url: str, revision: str = "head") -> None:
    """Bring the database at `database_url` to `revision`.

    Several processes may call it at once: they take turns. Raises ValueError without a url, UnknownSchema, and
    OperationalError where a table could not be locked within the lock timeout; then nothing has changed.
    """
    if not database_url:
        raise ValueError("there is no database to migrate: the url is empty")
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent).replace("%", "%%"))
    config.attributes["database_url"] = database_url
    try:
        command.upgrade(config, revision)
    except CommandError as error:
        raise UnknownSchema(
            "the database has a schema of before 2026-11-23, or of a version that is newer than this one: "
            f"docs/operations/upgrade.md says what to do ({error})"
        ) from error
