"""Commands about access tokens: token list, create, rotate, remove."""

from datetime import datetime
from typing import Annotated

import typer

from warpfold.client.cli import output
from warpfold.client.cli.output import Json
from warpfold.client.cli.session import service
from warpfold.client.tokens import NewToken, TokenScope

_HELP = (
    "Create, list, rotate and remove access tokens, by the service: an admin's token manages those of everybody, any "
    "other token those of its user. Without --url, and where the database of a service is on this machine, the command "
    "uses the database instead, and needs no token."
)

_Id = Annotated[int, typer.Argument(metavar="ID", help="From the list.", show_default=False)]


def register(app: typer.Typer) -> None:
    """Add the group to `app`."""
    group = typer.Typer(help=_HELP, no_args_is_help=True)
    group.command("list")(show_all)
    group.command(epilog="Example: warpfold token create --label nightly --scope submit --days 90")(create)
    group.command()(rotate)
    group.command()(remove)
    app.add_typer(group, name="token", rich_help_panel="Account")


def show_all(context: typer.Context, as_json: Json = False) -> None:
    """List tokens, the removed among them: for an admin everybody's."""
    with service(context) as client:
        tokens = client.tokens.list()
    if as_json:
        output.lines(tokens)
        return
    rows = (
        (
            str(token.id),
            token.user,
            token.role,
            f"{token.hint}…",
            token.label,
            " ".join(token.scopes),
            _minute(token.created_at),
            token.made_by or "",
            _minute(token.last_used_at),
            _minute(token.expires_at) or "never",
            _minute(token.revoked_at),
        )
        for token in tokens
    )
    names = ("id", "user", "role", "token", "label", "scopes", "made", "by", "used", "expires", "removed")
    output.table(names, rows, right=("id",), fold="label")


def create(
    context: typer.Context,
    user: Annotated[
        str | None, typer.Argument(help="Whose token; a new name creates the user. Only admins name one.")
    ] = None,
    *,
    role: Annotated[str | None, typer.Option(help="Of a new user.", show_default="user")] = None,
    label: Annotated[str, typer.Option(help="What it is for, to recognise it in the list.")] = "",
    days: Annotated[
        float | None,
        typer.Option(help="Days until it expires.", show_default="never; of an own one, when the token in use does"),
    ] = None,
    scopes: Annotated[
        list[TokenScope] | None,
        typer.Option("--scope", help="What it may do; may be repeated.", show_default="all that the role allows"),
    ] = None,
    as_json: Json = False,
) -> None:
    """Print a new token, for yourself or for a user. It is shown this once: only its hash is kept."""
    with service(context) as client:
        made: NewToken = client.tokens.create(user, role=role, label=label, days=days, scopes=scopes)
    _show(made, as_json)


def rotate(
    context: typer.Context,
    token_id: _Id,
    *,
    both_hold: Annotated[
        float, typer.Option(metavar="HOURS", help="For how long the old secret holds beside the new one.", min=0)
    ] = 0.0,
    as_json: Json = False,
) -> None:
    """Give a token a new secret, and print that; its lifetime begins anew. Without --both-hold the old secret is
    useless at once."""
    with service(context) as client:
        made: NewToken = client.tokens.rotate(token_id, both_hold_hours=both_hold)
    _show(made, as_json)


def remove(context: typer.Context, token_id: _Id) -> None:
    """Remove a token: from now on it is refused."""
    with service(context) as client:
        client.tokens.remove(token_id)
    output.say(f"token {token_id} is removed")


def _show(made: NewToken, as_json: bool) -> None:
    if as_json:
        output.document(made)
    else:
        typer.echo(made.token)


def _minute(moment: datetime | None) -> str:
    return "" if moment is None else f"{moment.astimezone():%Y-%m-%d %H:%M}"
