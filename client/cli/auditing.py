"""The command audit: what administrators and tokens did that changed something."""

from datetime import datetime
from typing import Annotated

import typer

from warpfold.client.cli import output
from warpfold.client.cli.counts import Limit
from warpfold.client.cli.output import Json
from warpfold.client.cli.session import service
from warpfold.client.tokens import AuditEntry


def register(app: typer.Typer) -> None:
    """Add the command to `app`."""
    example = "Example: warpfold audit --action cancel_job --since 2026-11-28"
    app.command("audit", rich_help_panel="Account", epilog=example)(show)


def show(
    context: typer.Context,
    *,
    actor: Annotated[str | None, typer.Option(help="What this user did.")] = None,
    action: Annotated[str | None, typer.Option(help="What was done, such as sign_in, make_key, cancel_job.")] = None,
    thing: Annotated[str | None, typer.Option(help="What was done to the thing with this id or name.")] = None,
    since: Annotated[datetime | None, typer.Option(help="What was done then or later.")] = None,
    limit: Limit = 20,
    as_json: Json = False,
) -> None:
    """List what administrators and tokens did that changed something, newest first. Only admins may."""
    with service(context) as client:
        entries: list[AuditEntry] = client.audit(actor=actor, action=action, thing=thing, since=since, limit=limit)
    if as_json:
        output.lines(entries)
        return
    rows = (
        (
            f"{entry.at.astimezone():%Y-%m-%d %H:%M:%S}",
            entry.actor or "(machine)",
            entry.address,
            entry.action,
            entry.thing,
            entry.owner or "",
            "; ".join(f"{name} {value}" for name, value in entry.details.items() if value not in (None, "", [], False)),
        )
        for entry in entries
    )
    output.table(("at", "by", "from", "did", "to", "of", "details"), rows, fold="details")
