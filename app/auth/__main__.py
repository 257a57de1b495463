"""`warpfold token`: create, list, rotate and revoke access tokens, in the database that WARPFOLD_DATABASE_URL names, or
of the service that runs on WARPFOLD_DATA_DIR (.warpfold by default)."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Annotated, NoReturn

import typer
from sqlalchemy.exc import OperationalError

from warpfold.app.auth.access_tokens import (
    MOST_DAYS,
    Role,
    RoleMismatch,
    create_token,
    hash_of,
    list_tokens,
    revoke_token,
    rotate_token,
)
from warpfold.app.auth.users import checked_label, checked_name
from warpfold.app.config import load_settings
from warpfold.app.db import BlockingDatabase, first_line
from warpfold.contract.terminal import table

cli = typer.Typer(
    help="Create, list, rotate and revoke access tokens.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


@cli.command()
def create(
    user: Annotated[str, typer.Argument(help="Whose token; the user is created if new.")],
    role: Annotated[Role | None, typer.Option(help="Of a new user.", show_default="user")] = None,
    label: Annotated[str, typer.Option(help="What it is for, to recognise it in the list.")] = "",
    days: Annotated[
        float | None, typer.Option(help="Days until it expires.", min=1e-5, max=MOST_DAYS, show_default="never")
    ] = None,
) -> None:
    """Print a new token. It is shown this once: only its hash is kept."""
    try:
        checked_name(user)
        checked_label(label)
    except ValueError as error:
        _fail(str(error))
    with _database() as database:
        try:
            typer.echo(database.run(create_token, user, role, label, days))
        except RoleMismatch as error:
            _fail(str(error))


@cli.command("list")
def show() -> None:
    """List all tokens, the revoked among them."""
    with _database() as database:
        tokens = database.run(list_tokens)
    rows = (
        (
            str(token.id),
            token.user,
            token.role.value,
            f"{token.hint}…",
            token.label,
            _minute(token.created_at),
            _minute(token.expires_at) or "never",
            _minute(token.revoked_at),
        )
        for token in tokens
    )
    table(("id", "user", "role", "token", "label", "created", "expires", "revoked"), rows, right=("id",), fold="label")


@cli.command()
def rotate() -> None:
    """Replace the token that standard input holds by a new one of the same user, label and lifetime, and print that.
    The old one is useless at once."""
    old = sys.stdin.readline().strip()
    with _database() as database:
        issued = database.run(rotate_token, hash_of(old))
        if issued is None:
            _fail("this token is unknown, expired or was revoked")
        typer.echo(issued.token)


@cli.command()
def revoke(token_id: Annotated[int, typer.Argument(metavar="ID", help="From the list.")]) -> None:
    """Revoke a token: from now on it is refused."""
    with _database() as database:
        if not database.run(revoke_token, token_id):
            _fail(f"there is no token {token_id} in force")
    typer.echo(f"Token {token_id} is revoked.")


def _minute(moment: datetime | None) -> str:
    return "" if moment is None else f"{moment:%Y-%m-%d %H:%M}"


@contextmanager
def _database() -> Iterator[BlockingDatabase]:
    url = load_settings().database_in_use()
    if not url:
        _fail("set WARPFOLD_DATABASE_URL to the service's database, or WARPFOLD_DATA_DIR to its folder")
    database = BlockingDatabase(url, application="warpfold token")
    try:
        yield database
    except OperationalError as error:
        _fail(f"the database cannot be used: {first_line(error)}")
    finally:
        database.close()


def _fail(message: str) -> NoReturn:
    typer.echo(f"warpfold token: {message}", err=True)
    raise typer.Exit(1)


if __name__ == "__main__":
    cli(prog_name="warpfold token")
