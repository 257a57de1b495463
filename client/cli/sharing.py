"""Commands about who sees what: share, unshare."""

from typing import Annotated

import typer

from warpfold.client.cli import output
from warpfold.client.cli.output import Json
from warpfold.client.cli.session import service
from warpfold.client.sharing import Sharing, Thing

_Thing = Annotated[Thing, typer.Argument(metavar="dataset|job|batch", help="What is shared.", show_default=False)]
_Id = Annotated[str, typer.Argument(metavar="ID", help="The whole id.")]


def register(app: typer.Typer) -> None:
    """Add the commands to `app`."""
    example = "Example: warpfold share dataset $(warpfold dataset upload samples.npy) --with bob"
    app.command(rich_help_panel="Data", epilog=example)(share)
    app.command(rich_help_panel="Data")(unshare)


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
