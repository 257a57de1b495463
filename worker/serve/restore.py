"""The command `warpfold restore`: brings a backup of `warpfold backup`, or of `deploy/backup.sh`, back into the
embedded servers of a folder."""

import shutil
import subprocess
import sys
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, NoReturn

import typer
from filelock import FileLock, Timeout
from sqlalchemy import text

from warpfold.app import logs
from warpfold.app.auth.access_tokens import hash_of, principal_of
from warpfold.app.config import Settings, load_settings
from warpfold.app.db import BlockingDatabase
from warpfold.worker.embedded.postgres import EmbeddedPostgres
from warpfold.worker.embedded.server import ServerMissing
from warpfold.worker.serve.backup import DUMP
from warpfold.worker.serve.bootstrap import LOCK_FILE, TOKEN_FILE, prepare_data_dir, prepare_database

cli = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)


@cli.command()
def restore(
    backup: Annotated[Path, typer.Argument(help="A folder that a backup is.", show_default=False)],
    data_dir: Annotated[
        Path | None,
        typer.Option(help="The folder of the service to restore.", show_default="WARPFOLD_DATA_DIR or .warpfold"),
    ] = None,
    replace: Annotated[
        bool, typer.Option("--replace", help="Put the database that the folder has aside; its files stay beside.")
    ] = False,
) -> None:
    """Bring a backup back into the folder of a service that does not run and embeds its Postgres: the database, the
    data sets and the stored results. Then start the service with `warpfold serve`."""
    logs.configure(role="restore")
    settings = load_settings()
    if data_dir is not None:
        settings = settings.model_copy(update={"data_dir": data_dir})
    if settings.database_url:
        _fail("WARPFOLD_DATABASE_URL names a Postgres that is not embedded; use deploy/restore.sh")
    if not (backup / DUMP).is_file():
        _fail(f"{backup} is no backup: it has no {DUMP}")
    root = prepare_data_dir(settings)
    try:
        with FileLock(root / LOCK_FILE, timeout=0):
            aside = _restore(backup, settings.model_copy(update={"data_dir": root}), root, replace=replace)
    except Timeout:
        _fail(f"the service in {root} runs; stop it first")
    except (ServerMissing, OSError, RuntimeError) as error:
        _fail(str(error))
    kept = f"; the database of before is in {aside}, remove it when you do not need it" if aside else ""
    print(f"restored {backup}{kept}; now start the service with `warpfold serve`")


def _restore(backup: Path, settings: Settings, root: Path, *, replace: bool) -> Path | None:
    """Restore, and return where the database of before was put. Where that fails, it is back in its place."""
    folder = root / "postgres"
    aside = None
    if folder.exists():
        if not replace:
            _fail(f"{root} has a database already; with --replace it is put aside")
        EmbeddedPostgres(folder).stop()  # which a killed service may have left running
        aside = folder.with_name(f"postgres.before-{datetime.now(UTC):%Y-%m-%dT%H-%M-%SZ}")
        folder.rename(aside)
    try:
        _fill(EmbeddedPostgres(folder), backup, root)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        if aside is not None:
            aside.rename(folder)
        raise
    for name, place in (("datasets", settings.datasets_dir()), ("artefacts", settings.artefacts_dir())):
        _copy(backup / name, place)
    return aside


def _fill(postgres: EmbeddedPostgres, backup: Path, root: Path) -> None:
    """Make a database of the dump, with the newest schema. Raises RuntimeError."""
    url = postgres.start()
    try:
        options = ("--exit-on-error", "--single-transaction", "--no-owner", "--no-privileges", f"--dbname={url}")
        command = [str(postgres.program("pg_restore")), *options, str(backup / DUMP)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(f"the dump cannot be restored: {done.stderr.strip()}")
        _analyze(url)
        _forget_token_of_another(url, root / TOKEN_FILE)
        trouble = prepare_database(url, root)
        if trouble is not None:
            raise RuntimeError(trouble)
    finally:
        postgres.stop()


def _analyze(url: str) -> None:
    """Have Postgres count what it holds: a dump brings no statistics, without which a long queue is read as a whole."""
    database = BlockingDatabase(url, application="warpfold-restore")
    try:
        database.run(lambda connection: connection.execute(text("set local statement_timeout = 0; analyze")))
    finally:
        database.close()


def _forget_token_of_another(url: str, note: Path) -> None:
    """Remove the note of the first token if the database does not know that token: a new one is made then."""
    with suppress(FileNotFoundError):
        database = BlockingDatabase(url, application="warpfold-restore")
        try:
            if database.run(principal_of, hash_of(note.read_text().strip())) is None:
                note.unlink()
        finally:
            database.close()


def _copy(saved: Path, place: Path) -> None:
    """Copy the files that `place` lacks. They are named after their content, or after the attempt that made them, so
    one that is there is the same."""
    for source in saved.rglob("*"):
        target = place / source.relative_to(saved)
        if source.is_file() and not target.exists():
            target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            part = target.with_name(f"{target.name}.part")
            shutil.copy2(source, part)
            part.replace(target)


def _fail(message: str) -> NoReturn:
    typer.echo(f"warpfold restore: {message}", err=True)
    sys.exit(1)


if __name__ == "__main__":
    cli(prog_name="warpfold restore")
