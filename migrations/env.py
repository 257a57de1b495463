"""Runs the migrations, for `migrations.upgrade` and for the `alembic` command."""

from alembic import context
from sqlalchemy import Connection, create_engine, text
from sqlalchemy.pool import NullPool

from warpfold.app.config import load_settings
from warpfold.app.db import database_url
from warpfold.app.tables import metadata
from warpfold.migrations.rights import grant

# A migration that waits for a lock stops all later queries of the table: it rather fails, and is run again.
_LOCK_TIMEOUT = "5s"
_TURN = 0x7761727066  # advisory lock: "warpf"


def _migrate(connection: Connection) -> None:
    connection.execute(text("select pg_advisory_lock(:turn)"), {"turn": _TURN})
    connection.execute(text(f"set lock_timeout = '{_LOCK_TIMEOUT}'"))
    connection.commit()
    context.configure(
        connection=connection,
        target_metadata=metadata,
        compare_server_default=True,
        transaction_per_migration=True,
    )
    with context.begin_transaction():
        context.run_migrations()
    connection.commit()
    grant(connection)
    connection.commit()


def main() -> None:
    url = context.config.attributes.get("database_url") or load_settings().database_url
    if not url:
        raise SystemExit("Set WARPFOLD_DATABASE_URL to the database to migrate.")
    engine = create_engine(database_url(url), poolclass=NullPool)  # closing the connection releases the lock
    with engine.connect() as connection:
        _migrate(connection)


main()
