"""Reductions by key, and of several ops or columns, on the command line: `reduce FILE --by KEYS`."""

import csv
import json
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import typer
from pydantic import ValidationError

from warpfold.client.api import Client
from warpfold.client.cli import output
from warpfold.client.cli.backends import RunOptions
from warpfold.client.cli.exits import Exit, fail
from warpfold.client.cli.files import seekable
from warpfold.client.cli.groups import check_folder
from warpfold.client.cli.opening import faults
from warpfold.client.cli.session import check_ended_well, service, wait_for
from warpfold.client.cli.values import number_of_files
from warpfold.client.files_here import check_array, check_table
from warpfold.client.group_table import GroupbyResult
from warpfold.client.groupby import parameters_of
from warpfold.client.jobs import result_of
from warpfold.client.sources import ManyFiles
from warpfold.contract.faults import first_fault
from warpfold.contract.keyed import key_values, keys_of, values_of
from warpfold.contract.kinds.groupby import GroupbySpec
from warpfold.contract.wording import number_of
from warpfold.kernels.errors import KernelError
from warpfold.kernels.ops import OPS, Parameters
from warpfold.kernels.parts.keyed import GroupTable
from warpfold.kernels.strategy import EXACT

WRITTEN = (".csv", ".parquet", ".arrow")
_NO_ID = "0" * 64


@dataclass(frozen=True, slots=True)
class GroupByRequest:
    """The values of the options: names with commas between them, as in a line of CSV, and the other fields of the spec.
    Without keys all rows are one group, and without columns too the file is an array."""

    by: str | None
    columns: str | None
    ops: str
    fields: Mapping[str, Any]
    of_file: Mapping[str, Any]

    def spec(self, of: Mapping[str, Any]) -> dict[str, Any]:
        """The spec of the job, of a source. Raises BadParameter."""
        if self.columns is None and self.by is not None:
            raise typer.BadParameter("needs --column, which names the columns to reduce", param_hint="--by")
        fields = dict(self.fields)
        parameters = {name: fields.pop(name, None) for name in ("ddof", *Parameters.names())}
        takes = {name for op in self.ops.split(",") if op in OPS for name in OPS[op].takes}
        for name in Parameters.names():
            if parameters[name] is not None and name not in takes:
                raise typer.BadParameter(f"{self.ops} takes no {name}", param_hint=f"--{name}")
        if "strategy" in fields:
            raise typer.BadParameter(
                "groups have one strategy, exact, and so have several ops or columns", param_hint="--strategy"
            )
        made: dict[str, Any] = {"kind": "groupby", "by": _listed(self.by), **fields}
        if self.columns is None:
            made["aggregations"] = [
                {"source": of, "op": op, "name": op, **parameters_of(op, parameters)} for op in self.ops.split(",")
            ]
        else:
            made["source"] = of
            made["aggregations"] = [
                {"column": column, "op": op, **parameters_of(op, parameters)}
                for column, op in product(_listed(self.columns), self.ops.split(","))
            ]
        try:
            GroupbySpec.model_validate(made)
        except ValidationError as error:
            fault = first_fault(error)
            option = str(fault.field).replace("_", "-")
            raise typer.BadParameter(str(fault), param_hint=f"--{option}" if option in self.fields else None) from None
        return made


def reduce_by(context: typer.Context, files: Sequence[Path | str], asked: GroupByRequest, how: RunOptions) -> None:
    """Reduce the rows of each group of the table that the files are, and print a line for each group, or write the
    table to a file. A string names a file that the service reads."""
    if how.to is not None and (how.as_json or how.to.suffix.lower() not in WRITTEN):
        raise typer.BadParameter(f"a name should end in {', '.join(WRITTEN)}, without --json", param_hint="-o")
    check_folder(how.to)
    with ExitStack() as opened:
        read = [opened.enter_context(seekable(file, "FILE")) if isinstance(file, Path) else file for file in files]
        table = ManyFiles(read, [*map(str, files)])
        if how.locally:
            paths = [str(path.resolve()) for path in table.here]
            named = [*zip(table.called, table.here, strict=True)]
            _here(asked.spec({"type": "files", "paths": paths, **asked.of_file}), named, how)
            return
        with faults("", "FILE"):
            made = asked.spec(table.of_uploads([_NO_ID] * len(table.here)))  # before a file is sent
            if asked.columns is None:
                check_array(table.here, asked.of_file, table.called)
            else:
                check_table(table.here, made, asked.of_file, table.called)
        client = opened.enter_context(service(context))
        _ask(client, asked.spec({**client.source(table, rehash=how.rehash), **asked.of_file}), how)


def _listed(names: str | None) -> list[str]:
    """The names of an option; one that holds a comma stands in quotes."""
    return [] if names is None else next(csv.reader([names]))


def _ask(client: Client, spec: dict[str, Any], how: RunOptions) -> None:
    ended = wait_for(client.submit(spec), how.timeout)
    if how.as_json:
        output.document(ended)
        check_ended_well(ended)
        return
    result = result_of(ended)
    assert isinstance(result, GroupbyResult), "the job is a group-by"
    if how.to is not None:
        write_table(client.groups(ended), how.to)
    elif result.sizes is None:
        _print_all(client.groups(ended))
    else:
        keys = {key.name: key.values or () for key in result.keys}
        values = {column.name: column.words or column.values or () for column in result.columns}
        print_table([*keys, *values], [*keys.values(), *values.values()])
    where = result.device.get("name", result.backend)
    read = "" if result.input is None else number_of_files(result.input) + output.read_by(result.input.dialects)
    _say(result.groups, result.rows, result.dropped, f"{where}, {result.timings.words}{read}")
    if "states" in spec:
        output.say(f"job {ended.id} has the states, which `warpfold merge` takes")


def _here(spec: dict[str, Any], named: Sequence[tuple[str, Path]], how: RunOptions) -> None:
    from warpfold.client import local
    from warpfold.client.cli.here import ReadHere

    try:
        with ReadHere(named, spec.get("fingerprint", False)) as read:
            table = local.group_by(spec, Path("/"))
            groups = table.table()
            document = _document(spec, table) if how.as_json else {}
            source = read.view(table.dialects, table.files)
    except KernelError as error:
        raise fail(str(error), Exit.NOT_INSTALLED if error.reason == "unavailable" else Exit.USAGE) from None
    if how.to is not None:
        write_table(groups, how.to)
    elif how.as_json:
        output.document(document | {"input": source.model_dump(mode="json")})
        return
    else:
        _print_all(groups)
    _say(groups.num_rows, table.rows, table.dropped, f"this machine{output.read_by(source.dialects)}")


def _document(spec: Mapping[str, Any], table: GroupTable) -> dict[str, Any]:
    """What the service says of a table of groups, as far as it was made here. Raises InvalidInput as `values_of`."""
    asked = GroupbySpec.model_validate(spec)
    return {
        "groups": int(table.sizes.size),
        "keys": [key.model_dump(mode="json") for key in keys_of(table, whole=True)],
        "columns": [column.model_dump(mode="json") for column in values_of(asked, table, whole=True)],
        "sizes": table.sizes.tolist(),
        "rows": table.rows,
        "strategy": EXACT,
        "correctly_rounded": True,
        "dropped": table.dropped,
    }


def _print_all(table: Any) -> None:
    shown = names_without_states(table)
    print_table(shown, [key_values(table[name]) for name in shown])


def names_without_states(table: Any) -> list[str]:
    """The names of the columns of a table of pyarrow that can be read."""
    return [name for name in table.column_names if str(table.schema.field(name).type) != "large_binary"]


def print_table(names: Sequence[str], columns: Sequence[Iterable[object]]) -> None:
    """Print a line for each row, with tabs between the columns."""
    typer.echo("\t".join(map(_cell, names)))
    for row in zip(*columns, strict=True):
        typer.echo("\t".join(map(_cell, row)))


def _cell(value: object) -> str:
    if isinstance(value, str):
        return value if value.isprintable() and value else json.dumps(value, ensure_ascii=False)
    return json.dumps(value) if value is None or isinstance(value, bool) else str(value)


def write_table(table: Any, to: Path) -> None:
    """Write a table of pyarrow to a file, as its name says."""
    from pyarrow import csv, ipc, parquet

    match to.suffix.lower():
        case ".csv":
            csv.write_csv(table.select(names_without_states(table)), to)
        case ".parquet":
            parquet.write_table(table, to)
        case _:
            with ipc.new_file(to, table.schema) as file:
                file.write_table(table)


def _say(groups: int, rows: int, dropped: int, where: str) -> None:
    left = f"; {number_of('row', dropped)} without a key left out" if dropped else ""
    output.say(f"{number_of('group', groups)} of {number_of('row', rows)}; exact, correctly rounded; {where}{left}")
