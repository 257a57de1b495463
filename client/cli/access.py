"""Commands about access: login, logout, whoami, rotate-token, and who sees what: share, unshare."""

import sys
from typing import Annotated
from urllib.parse import urlsplit

import typer

from warpfold.client.api import Client
from warpfold.client.cli import output
from warpfold.client.cli.exits import Exit, fail
from warpfold.client.cli.output import Json
from warpfold.client.cli.session import Session, ending_well, service
from warpfold.client.settings import Surroundings, find_target, forget_login, keep_login, read_logins, replace_token
from warpfold.client.sharing import Sharing, Thing

_PANEL = "Account"

_Thing = Annotated[Thing, typer.Argument(metavar="dataset|job|batch", help="What is shared.", show_default=False)]
_Id = Annotated[str, typer.Argument(metavar="ID", help="The whole id.")]


def register(app: typer.Typer) -> None:
    """Add the commands to `app`."""
    login_example = "Example: warpfold login https://gpu.example.org < token.txt"
    app.command(rich_help_panel=_PANEL, epilog=login_example)(login)
    app.command(rich_help_panel=_PANEL)(logout)
    app.command(rich_help_panel=_PANEL)(whoami)
    app.command(rich_help_panel=_PANEL)(rotate_token)
    share_example = "Example: warpfold share dataset $(warpfold dataset upload samples.npy) --with bob"
    app.command(rich_help_panel="Data", epilog=share_example)(share)
    app.command(rich_help_panel="Data")(unshare)


def login(
    context: typer.Context, url: Annotated[str, typer.Argument(metavar="URL", help="The service's address.")]
) -> None:
    """Keep a token for a service, readable by you alone. It is asked for, or read from standard input."""
    token = typer.prompt("Token", hide_input=True) if sys.stdin.isatty() else sys.stdin.readline()
    session: Session = context.obj
    with ending_well(), Client(url, token.strip() or "none", patience_s=session.patience_s) as client:
        user = client.whoami()
    path = Surroundings.of_process().config_file
    keep_login(path, url, token.strip())
    output.say(f"{url} takes you for {user.name} ({user.role}); the token is in {path}")
    if url.startswith("http://") and urlsplit(url).hostname not in ("127.0.0.1", "::1", "localhost"):
        output.say("warning: http:// sends the token readable by everybody on the way; ask for https://")


def logout(
    url: Annotated[
        str | None, typer.Argument(metavar="URL", help="The service's address.", show_default="the latest login")
    ] = None,
) -> None:
    """Forget the token of a service."""
    path = Surroundings.of_process().config_file
    with ending_well():
        gone = url or read_logins(path).url
        if gone is None or not forget_login(path, gone):
            raise fail(f"there is no login{f' for {gone}' if gone else ''}", Exit.USAGE)
    output.say(f"forgot the token for {gone}")


def whoami(context: typer.Context, as_json: Json = False) -> None:
    """Show the service, and whom it takes you for."""
    session: Session = context.obj
    with service(context) as client:
        user, target = client.whoami(), find_target(session.url)
    if as_json:
        output.document({"url": target.url, "origin": target.origin, "name": user.name, "role": user.role})
    else:
        output.properties(
            [("user", user.name), ("role", user.role), ("service", target.url), ("found in", target.origin)]
        )


def rotate_token(context: typer.Context) -> None:
    """Replace the token by a new one; the old one is useless at once. The new one is kept where the old one was, or
    printed where that was given by a variable."""
    session: Session = context.obj
    with service(context) as client:
        old = find_target(session.url)
        token = client.rotate_token()
    place = replace_token(Surroundings.of_process(), old, token)
    if place is None:
        output.say("the old token was not kept in a file; this is the new one:")
        print(token)
    else:
        output.say(f"the new token for {old.url} is in {place}")


def share(
    context: typer.Context,
    thing: _Thing,
    identity: _Id,
    *,
    users: Annotated[
        list[str] | None, typer.Option("--with", metavar="USER", help="A user who sees it; may be repeated.")
    ] = None,
    everyone: Annotated[bool, typer.Option("--everyone", help="Share it with every user of the service.")] = False,
    as_json: Json = False,
) -> None:
    """Share an uploaded array, a job or a batch of yours with users, and with nobody else. Without an option, show with
    whom it is shared."""
    with service(context) as client:
        if users or everyone:
            sharing = client.share(thing, identity, users or (), everyone=everyone)
        else:
            sharing = client.sharing(thing, identity)
    _show(sharing, as_json)


def unshare(context: typer.Context, thing: _Thing, identity: _Id, as_json: Json = False) -> None:
    """Make an uploaded array, a job or a batch of yours private."""
    with service(context) as client:
        sharing = client.unshare(thing, identity)
    _show(sharing, as_json)


def _show(sharing: Sharing, as_json: bool) -> None:
    if as_json:
        output.document(sharing)
    else:
        others = ["everyone"] if sharing.everyone else [*sharing.users]
        output.properties([("seen by", ", ".join(["you", "admins", *others]))])
