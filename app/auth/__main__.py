"""`warpfold token` on the machine of the service: create, list, rotate and remove access tokens, in the database that
WARPFOLD_DATABASE_URL names, or of the service that runs on WARPFOLD_DATA_DIR (.warpfold by default). Elsewhere the
client's command does it by the api (`client/cli/tokens.py`)."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Annotated, Concatenate, NoReturn, ParamSpec

import typer
from sqlalchemy import Connection
from sqlalchemy.exc import OperationalError

from warpfold.app.auth import audit
from warpfold.app.auth.access_tokens import (
    MOST_DAYS,
    Issued,
    Role,
    RoleMismatch,
    UserRemoved,
    hash_of,
    issue_token,
    list_tokens,
    revoke_token,
    rotate_token,
)
from warpfold.app.auth.audit import Action, Deed
from warpfold.app.auth.scopes import Scope, text_of
from warpfold.app.auth.users import checked_label, checked_name
from warpfold.app.config import load_settings
from warpfold.app.db import BlockingDatabase, first_line
from warpfold.contract.terminal import table

P = ParamSpec("P")

cli = typer.Typer(
    help="Create, list, rotate and remove access tokens, in the database of the service on this machine.",
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
    scopes: Annotated[
        list[Scope] | None,
        typer.Option("--scope", help="What it may do; may be repeated.", show_default="all that the role allows"),
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
            issued = database.run(_noted, Action.MAKE_KEY, issue_token, user, role, label, days, scopes=scopes or None)
        except (RoleMismatch, UserRemoved) as error:
            _fail(str(error))
    assert issued is not None
    typer.echo(issued.token)


@cli.command("list")
def show() -> None:
    """List all tokens, the removed among them."""
    with _database() as database:
        tokens = database.run(list_tokens)
    rows = (
        (
            str(token.id),
            token.user,
            token.role.value,
            f"{token.hint}…",
            token.label,
            text_of(token.scopes),
            _minute(token.created_at),
            token.made_by or "",
            _minute(token.last_used_at),
            _minute(token.expires_at) or "never",
            _minute(token.revoked_at),
        )
        for token in tokens
    )
    names = ("id", "user", "role", "token", "label", "scopes", "made", "by", "used", "expires", "removed")
    table(names, rows, right=("id",), fold="label")


@cli.command()
def rotate(
    token_id: Annotated[
        int | None, typer.Argument(metavar="ID", help="From the list.", show_default="the one on standard input")
    ] = None,
    both_hold: Annotated[
        float, typer.Option(metavar="HOURS", help="For how long the old secret holds beside the new one.", min=0)
    ] = 0.0,
) -> None:
    """Give a token a new secret, and print that; its lifetime begins anew. Without --both-hold the old secret is
    useless at once."""
    hours = timedelta(hours=both_hold)
    with _database() as database:
        shown = hash_of(sys.stdin.readline().strip()) if token_id is None else None
        issued = database.run(_noted, Action.ROTATE_KEY, rotate_token, shown, token_id=token_id, both_hold=hours)
        if issued is None:
            _fail("this token is unknown, expired or was removed")
        typer.echo(issued.token)


@cli.command()
def remove(token_id: Annotated[int, typer.Argument(metavar="ID", help="From the list.")]) -> None:
    """Remove a token: from now on it is refused."""
    with _database() as database:
        if not database.run(Deed(None, Action.REMOVE_KEY, str(token_id)).done, revoke_token, token_id):
            _fail(f"there is no token {token_id} in force")
    typer.echo(f"Token {token_id} is removed.")


cli.command("revoke", hidden=True)(remove)


def _noted(
    connection: Connection,
    action: Action,
    work: Callable[Concatenate[Connection, P], Issued | None],
    *args: P.args,
    **kwargs: P.kwargs,
) -> Issued | None:
    """Make or rotate a token, and record it in the audit log."""
    issued = work(connection, *args, **kwargs)
    if issued is not None:
        audit.record(connection, audit.of_key(None, action, issued.info))
    return issued


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
