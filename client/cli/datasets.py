"""Commands about uploaded arrays: dataset list, upload, show, rename, delete."""

from pathlib import Path
from typing import Annotated

import typer

from warpfold.client.api import Client
from warpfold.client.cli import output
from warpfold.client.cli.counts import Limit
from warpfold.client.cli.exits import Exit, fail
from warpfold.client.cli.files import Rehash, seekable
from warpfold.client.cli.output import Json
from warpfold.client.cli.session import service

_ID_LENGTH = 64
_SEARCHED = 1000
_SHOWN = 12
"""So much of an id is enough to tell it from others; `--json` has it whole."""

Id = Annotated[str, typer.Argument(metavar="ID", help="SHA-256 of the file, or as much of its beginning as is unique.")]


def register(app: typer.Typer) -> None:
    """Add the group to `app`."""
    group = typer.Typer(help="Upload, list, rename and delete arrays.", no_args_is_help=True)
    group.command("list")(show_all)
    group.command(epilog="Example: warpfold submit --dataset $(warpfold dataset upload samples.npy) --wait")(upload)
    group.command()(show)
    group.command()(rename)
    group.command()(delete)
    app.add_typer(group, name="dataset", rich_help_panel="Data")


def show_all(
    context: typer.Context,
    *,
    owner: Annotated[str | None, typer.Option(help="Whose.")] = None,
    limit: Limit = 20,
    as_json: Json = False,
) -> None:
    """List uploaded arrays, newest first."""
    with service(context) as client:
        datasets = client.datasets(owner=owner, limit=limit)
    if as_json:
        output.lines(datasets)
        return
    rows = (
        [
            dataset.id[:_SHOWN],
            dataset.name,
            dataset.owner,
            dataset.format,
            dataset.dtype,
            "×".join(map(str, dataset.shape)),
            f"{dataset.bytes:,}",
            f"{dataset.last_used_at.astimezone():%Y-%m-%d}",
        ]
        for dataset in datasets
    )
    names = ("id", "name", "owner", "format", "dtype", "shape", "bytes", "last used")
    output.table(names, rows, right=("bytes",), fold="name")


def upload(
    context: typer.Context,
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="A file of any format that is read; - is standard input.")
    ],
    *,
    name: Annotated[str | None, typer.Option(help="For people.", show_default="the file's name")] = None,
    rehash: Rehash = False,
    as_json: Json = False,
) -> None:
    """Upload a file, and print its id. A file that the service has is not sent again; a cut upload goes on."""
    with service(context) as client, seekable(file, "FILE") as readable:
        kept = client.upload(readable, readable.name[-128:] if name is None else name[:128], rehash=rehash)
    if as_json:
        output.document(kept)
    else:
        typer.echo(kept.id)


def show(context: typer.Context, dataset_id: Id, as_json: Json = False) -> None:
    """Show an uploaded array."""
    with service(context) as client:
        dataset = client.dataset(_whole_id(client, dataset_id))
    if as_json:
        output.document(dataset)
    else:
        output.properties(
            [
                *(
                    ("id", dataset.id),
                    ("name", dataset.name or None),
                    ("owner", dataset.owner),
                    ("format", dataset.format),
                    ("dtype", dataset.dtype or None),
                ),
                *(("shape", "×".join(map(str, dataset.shape)) or None), ("bytes", dataset.bytes)),
                *(("uploaded", dataset.created_at), ("last used", dataset.last_used_at)),
            ]
        )


def rename(
    context: typer.Context,
    dataset_id: Id,
    name: Annotated[str, typer.Argument(metavar="NAME", help="The new name, for people; '' for none.")],
) -> None:
    """Give an uploaded array another name. Its id stays."""
    with service(context) as client:
        dataset = client.rename_dataset(_whole_id(client, dataset_id), name)
        called = f"is called {dataset.name!r}" if dataset.name else "has no name"
        output.say(f"{dataset.id[:_SHOWN]} {called}")


def delete(
    context: typer.Context,
    dataset_ids: Annotated[
        list[str], typer.Argument(metavar="ID...", help="Of arrays, or the beginnings of their ids.")
    ],
) -> None:
    """Give up uploaded arrays. A job that still needs one fails and says so."""
    with service(context) as client:
        # All ids are looked up first, so that an unknown id deletes nothing.
        for dataset_id in [_whole_id(client, dataset_id) for dataset_id in dataset_ids]:
            client.delete_dataset(dataset_id)
            output.say(f"{dataset_id[:_SHOWN]} deleted")


def _whole_id(client: Client, beginning: str) -> str:
    """The id of the array whose id begins so."""
    if len(beginning) >= _ID_LENGTH:
        return beginning
    if not beginning:
        raise typer.BadParameter("an id is not empty", param_hint="ID")
    ids = [dataset.id for dataset in client.datasets(limit=_SEARCHED) if dataset.id.startswith(beginning.lower())]
    if len(ids) == 1:
        return ids[0]
    if ids:
        raise fail(f"{len(ids)} of the latest arrays begin with {beginning!r}; write more of the id", Exit.REFUSED)
    raise fail(f"none of the latest {_SEARCHED:,} arrays begins with {beginning!r}", Exit.REFUSED)
