"""The command `warpfold backup`: saves the database, the data sets and the stored results of a service with embedded
servers, while it runs or not. `deploy/backup.sh` makes the same folders of other services."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, NoReturn

import typer
from filelock import FileLock, Timeout

from warpfold.app import logs
from warpfold.app.config import load_settings
from warpfold.contract.wording import number_of
from warpfold.worker.embedded.postgres import EmbeddedPostgres
from warpfold.worker.embedded.server import ServerMissing
from warpfold.worker.serve.bootstrap import LOCK_FILE

DUMP = "database.dump"
_DEPTHS = {"datasets": 2, "artefacts": 3}
"""How deep below its folder a file has its place; what lies elsewhere is being written."""
_KEPT = (".npy", ".arrow")
_NAMES = "2*Z"
"""The folders of backups are named by their time, in UTC."""

cli = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)


@cli.command()
def backup(
    folder: Annotated[Path, typer.Argument(help="Where backups are; a new folder is made in it.", show_default=False)],
    data_dir: Annotated[
        Path | None,
        typer.Option(help="The folder of the service to save.", show_default="WARPFOLD_DATA_DIR or .warpfold"),
    ] = None,
    keep: Annotated[int, typer.Option(min=1, help="How many backups to keep in FOLDER.")] = 14,
) -> None:
    """Save the database, the data sets and the stored results of a service that embeds its Postgres. The service may go
    on meanwhile. `warpfold restore` brings them back."""
    logs.configure(role="backup")
    settings = load_settings()
    if data_dir is not None:
        settings = settings.model_copy(update={"data_dir": data_dir})
    if settings.database_url:
        _fail("WARPFOLD_DATABASE_URL names a Postgres that is not embedded; use deploy/backup.sh")
    root = settings.data_dir.expanduser().resolve()
    if not (root / "postgres").is_dir():
        _fail(f"there is no service in {root}; --data-dir names its folder")
    settings = settings.model_copy(update={"data_dir": root})
    os.umask(0o077)
    made = folder.resolve() / f"{datetime.now(UTC):%Y-%m-%dT%H-%M-%SZ}"
    part = made.with_name(f".{made.name}.part")
    try:
        last = max(made.parent.glob(_NAMES), default=None)
        part.mkdir(parents=True)
        # The dump comes first: a file that arrives later is in no row of it.
        _dump(root, part / DUMP)
        datasets = save(settings.datasets_dir(), "datasets", part, last)
        results = save(settings.artefacts_dir(), "artefacts", part, last)
        part.rename(made)
    except (ServerMissing, OSError, RuntimeError) as error:
        shutil.rmtree(part, ignore_errors=True)
        _fail(str(error))
    for old in sorted(made.parent.glob(_NAMES))[:-keep]:
        shutil.rmtree(old)
    files = f"{number_of('data set', datasets)} and {number_of('file', results)} of results"
    print(f"saved the database, {files} in {made}; `warpfold restore {made}` brings them back")


def _dump(root: Path, to: Path) -> None:
    """Dump the database, whose server is started where no service runs. Raises RuntimeError."""
    postgres = EmbeddedPostgres(root / "postgres")
    try:
        with FileLock(root / LOCK_FILE, timeout=0):
            url = postgres.start()
            try:
                _dump_of(postgres, url, to)
            finally:
                postgres.stop()
    except Timeout:  # the service runs, and its server with it
        _dump_of(postgres, postgres.url, to)


def _dump_of(postgres: EmbeddedPostgres, url: str, to: Path) -> None:
    options = ("--format=custom", "--no-owner", "--no-privileges", f"--file={to}")
    command = [str(postgres.program("pg_dump")), *options, url]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"the database cannot be dumped: {done.stderr.strip()}")


def save(place: Path, name: str, to: Path, last: Path | None) -> int:
    """Save the files of a folder below the folder `name` of the backup `to`, and return how many there are. Those that
    the `last` backup has already are links to these: a file never changes once it has its place."""
    count = 0
    (to / name).mkdir()
    for file in _files(place, _DEPTHS[name]):
        target, saved = to / name / file, None if last is None else last / name / file
        target.parent.mkdir(parents=True, exist_ok=True)
        if saved is not None and saved.is_file():
            target.hardlink_to(saved)
        else:
            try:
                shutil.copy2(place / file, target)
            except FileNotFoundError:  # it was removed since it was listed
                continue
        count += 1
    return count


def _files(place: Path, depth: int) -> Iterator[Path]:
    for path in place.glob("/".join("*" * depth)):
        file = path.relative_to(place)
        if path.suffix in _KEPT and file.parts[0] != "incoming" and path.is_file():
            yield file


def _fail(message: str) -> NoReturn:
    typer.echo(f"warpfold backup: {message}", err=True)
    sys.exit(1)


if __name__ == "__main__":
    cli(prog_name="warpfold backup")
