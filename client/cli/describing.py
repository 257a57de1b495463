"""The command that describes the columns of a table: describe."""

from pathlib import Path
from typing import Annotated, Any

import typer

from warpfold.client import local
from warpfold.client.cli import output
from warpfold.client.cli.exits import Exit, fail
from warpfold.client.cli.files import Rehash, seekable
from warpfold.client.cli.groups import numbers_from
from warpfold.client.cli.keyed import print_table
from warpfold.client.cli.opening import name_faults, options_of
from warpfold.client.cli.output import Json
from warpfold.client.cli.session import Timeout, service, wait_for
from warpfold.client.cli.text_options import with_text_options
from warpfold.client.files_here import schema_of
from warpfold.client.group_table import GroupTable
from warpfold.client.jobs import result_of
from warpfold.contract.described import QUARTILES, described, describing
from warpfold.contract.keyed import values_of
from warpfold.contract.kinds.groupby import GroupbySpec
from warpfold.contract.wording import number_of
from warpfold.kernels.errors import InvalidInput, KernelError
from warpfold.kernels.formats.signature import delimiter_of

_EXAMPLES = """Examples:

warpfold describe sales.csv

warpfold describe sales.parquet --column price,quantity --q 0.5,0.99

warpfold describe sales.csv --local --json"""


def register(app: typer.Typer) -> None:
    """Add the command to `app`."""
    app.command(rich_help_panel="Jobs", epilog=_EXAMPLES)(describe)


@with_text_options
def describe(
    context: typer.Context,
    file: Annotated[
        str, typer.Argument(metavar="FILE", help="A table: Parquet, Arrow, Feather, CSV, TSV, JSON lines or .xlsx.")
    ],
    *,
    column: Annotated[str | None, typer.Option(metavar="COLUMNS", help="These columns, not all of numbers.")] = None,
    q: Annotated[str | None, typer.Option("--q", metavar="Q", help="The quantiles: 0.25,0.5,0.75.")] = None,
    rows: Annotated[str | None, typer.Option("--filter", help="Which rows, as JSON.")] = None,
    text: dict[str, Any],
    locally: Annotated[bool, typer.Option("--local", help="Compute on this machine, without a service.")] = False,
    rehash: Rehash = False,
    timeout: Timeout = None,
    as_json: Json = False,
) -> None:
    """Describe the columns of a table in one pass: counts, nulls, NaNs, zeros, moments, extremes and quantiles.

    Every value is exact or rounded once. A line has a column; NaNs are left out of its values.
    """
    of_file = options_of({"filter": rows, **text})
    asked = numbers_from(q, "--q")
    quantiles = QUARTILES if asked is None else tuple(asked) if isinstance(asked, list) else (asked,)
    with seekable(Path(file), "FILE") as path:
        with name_faults(path, "FILE"):
            kinds = {field.name: field.type for field in schema_of(path, of_file)}
        names = None if column is None else column.split(",")
        if unknown := [name for name in names or () if name not in kinds]:
            raise typer.BadParameter(f"there is no column {unknown[0]!r}", param_hint="--column")
        try:
            aggregations = describing(kinds, names, quantiles)
        except InvalidInput as error:
            raise typer.BadParameter(str(error), param_hint="--column") from None
        spec: dict[str, Any] = {"kind": "groupby", "nan_policy": "omit", "aggregations": aggregations}
        if locally:
            columns, count, where = _here(spec, of_file, path)
        else:
            with service(context) as client:
                kept = client.upload(path, path.name[-128:], rehash=rehash)
                tabs = {"text": "tsv"} if delimiter_of(path.name) == "\t" else {}
                source = {"type": "dataset", "id": kept.id, **tabs, **of_file}
                result = result_of(wait_for(client.submit({**spec, "source": source}), timeout))
            assert isinstance(result, GroupTable), "the job is a group-by"
            columns, count = result.columns, result.rows
            where = f"{result.device.get('name', result.backend)}, {result.timings.words}"
    heads, table = described(columns, count)
    if as_json:
        output.document({"rows": count, "columns": [dict(zip(heads, row, strict=True)) for row in table]})
    else:
        print_table(heads, list(zip(*table, strict=True)))
    output.say(f"{number_of('column', len(table))} of {number_of('row', count)}; exact, correctly rounded; {where}")


def _here(spec: dict[str, Any], of_file: dict[str, Any], path: Path) -> tuple[Any, int, str]:
    named = {**spec, "source": {"type": "table", "path": str(path.resolve()), **of_file}}
    try:
        table = local.group_by(named, path.resolve().parent)
    except KernelError as error:
        raise fail(str(error), Exit.NOT_INSTALLED if error.reason == "unavailable" else Exit.USAGE) from None
    return values_of(GroupbySpec.model_validate(named), table, whole=True), table.rows, "this machine"
