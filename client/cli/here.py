"""Reductions on this machine: `reduce FILE --local`."""

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, Self

import numpy as np
import typer
from pydantic import TypeAdapter

from warpfold.client import local
from warpfold.client.cli import output
from warpfold.client.cli.arrays import ArrayRequest, read_array, read_first
from warpfold.client.cli.backends import RunOptions
from warpfold.client.cli.exits import Exit, fail
from warpfold.client.cli.groups import print_values, say_how, words_of, write_array, write_csv
from warpfold.client.cli.values import described, exactly, fingerprinted, left_out, number_of_files
from warpfold.client.groups import op_of, parameters_in
from warpfold.client.job_results import in_words
from warpfold.client.value_arrays import meant_from
from warpfold.contract.inputs import MOST_OBJECTS, InputView
from warpfold.contract.json_value import ComplexHex, JsonComplex, JsonValue, check_length, hex_of, value_of
from warpfold.contract.time_view import TimeView
from warpfold.kernels.backend import GroupedReduction, Reduction
from warpfold.kernels.errors import KernelError
from warpfold.kernels.formats.dialect import Dialect
from warpfold.kernels.ops import OPS, Parameters, Value
from warpfold.kernels.source import ArraySource
from warpfold.kernels.sources.chained import files_read
from warpfold.kernels.sources.file_checks import intact
from warpfold.kernels.sources.inputs import Inputs, LocalFile
from warpfold.kernels.sources.sequential import Elements, FileCount, SequentialSource, dialects_of, noticed

_FOR_THE_SERVICE = ("backend", "fingerprint")
"""The fields of a spec that a reduction on this machine does not take."""

_JSON: TypeAdapter[Value | complex | None] = TypeAdapter(JsonValue | JsonComplex | None)
"""Writes a value as JSON can say it."""


def _begin(path: Path) -> BinaryIO:
    return path.open("rb")


class ReadHere:
    """The files that a reduction on this machine reads, by the names that the user gave them: `with ReadHere(…)`."""

    def __init__(self, files: Sequence[tuple[str, Path]], fingerprint: bool) -> None:
        self.fingerprint = fingerprint
        self._inputs = Inputs(
            [LocalFile(name, partial(_begin, path)) for name, path in files],
            fingerprint=fingerprint,
            most=MOST_OBJECTS,
        )

    def __enter__(self) -> "ReadHere":
        self._inputs.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self._inputs.__exit__(*error)

    def view(self, dialects: Sequence[Dialect] = (), counts: Sequence[FileCount] = ()) -> InputView:
        """The files that were read, as a result of the service describes them, and how text is written. Raises
        InvalidInput where a file has changed."""
        view = InputView.of((), self._inputs, fingerprint=self.fingerprint, dialects=dialects, counts=counts)
        assert view is not None, "there is a file"
        return view


def reduce_here(file: str, beside: Mapping[str, str], asked: ArrayRequest, how: RunOptions) -> None:
    """Reduce one array, with the others `beside` it, on this machine."""
    fields = {name: value for name, value in asked.fields.items() if name not in _FOR_THE_SERVICE}
    with ExitStack() as opened:
        first = opened.enter_context(read_first(file, asked))
        others = {
            name: opened.enter_context(read_array(each, f"--{name}", asked.of_file)) for name, each in beside.items()
        }
        named = [(file, first), *((beside[name], part) for name, part in others.items())]
        alone = [(name, getattr(part, "path", None)) for name, part in named]  # several files have none, nor has a URL
        paths = [(name, path) for name, path in alone if path is not None]
        paths += [(str(path), Path(path)) for path in asked.together]
        read = opened.enter_context(ReadHere(paths, "fingerprint" in asked.fields))
        row, in_place = OPS.get(asked.op), bool(asked.shape.keys() - {*Parameters.names()} or "weights" in beside)
        for name, column in asked.columns.items():
            others[name] = opened.enter_context(read_array(file, f"--{name}", {**asked.of_file, "column": column}))
        with_it = {name: part.elements(f"--{name}", row, in_place=in_place) for name, part in others.items()}
        elements = first.elements("FILE", row, in_place=in_place)
        if asked.shape:
            shape: Mapping[str, Any] = asked.shape
            axis: Any = shape.get("axis")
            if any(isinstance(each, str) for each in (axis if isinstance(axis, list) else [axis])):
                from warpfold.client.cli.opened import axes_by_number

                shape = {**shape, "axis": axes_by_number(axis, first)}
            _to_array(elements, asked.op, with_it, fields, shape, read=read, as_json=how.as_json, to=how.to)
        else:
            _to_value(elements, asked.op, with_it, fields, read=read, as_json=how.as_json)


def reduce_each_here(paths: Sequence[Path], asked: ArrayRequest, how: RunOptions) -> None:
    """Reduce each of several files by itself on this machine. A file without a value is named, and the others go on."""
    fields = {name: value for name, value in asked.fields.items() if name not in _FOR_THE_SERVICE}
    for path in paths:  # every file is checked before any file is reduced
        with read_array(str(path), "FILE", asked.of_file):
            pass
    failed = 0
    for path in paths:
        try:
            with (
                read_array(str(path), "FILE", asked.of_file) as whole,
                ReadHere([(str(path), path)], "fingerprint" in asked.fields) as read,
            ):
                elements = whole.elements("FILE", OPS.get(asked.op))
                value = _ValueHere.of(elements, asked.op, {}, fields, read)
        except (KernelError, typer.BadParameter) as error:
            failed += 1
            output.say(f"{path}: {str(error).removeprefix(f'{path} ')}")
            continue
        if how.as_json:
            output.lines([{"file": str(path), **value.document()}])
        else:
            typer.echo(f"{value.words}\t{path}")
    if failed:
        raise fail(f"{failed} of {len(paths)} files have no value", Exit.FAILED)


def _to_value(
    array: Elements,
    op: str,
    beside: Mapping[str, Elements],
    chosen: Mapping[str, Any],
    *,
    read: ReadHere,
    as_json: bool,
) -> None:
    """Reduce on this machine, and print as `print_value`, or with `as_json` a document."""
    try:
        value = _ValueHere.of(array, op, beside, chosen, read)
    except KernelError as error:
        code = Exit.NOT_INSTALLED if error.reason == "unavailable" else Exit.USAGE
        raise fail(str(error), code) from None
    if as_json:
        output.document(value.document())
        return
    typer.echo(value.words)
    result, source = value.result, value.source
    output.say(
        f"{described(result)}; this machine"
        + exactly(result.fraction)
        + left_out(value.nulls, source, null=result.null)
        + number_of_files(source)
        + output.read_by(source.dialects)
        + output.noticed(value.notice)
        + fingerprinted(source.fingerprint if read.fingerprint else None)
    )


@dataclass(frozen=True, slots=True)
class _ValueHere:
    """A reduction to one value, the nulls that it met, the files that were read, and what is to be noticed of them."""

    result: Reduction
    nulls: int
    source: InputView
    notice: str | None

    @classmethod
    def of(
        cls, array: Elements, op: str, beside: Mapping[str, Elements], chosen: Mapping[str, Any], read: ReadHere
    ) -> Self:
        """Reduce an array, with the others `beside` it. Raises KernelError."""
        parts = [array, *beside.values()]
        # The dtypes of both arrays may be made one.
        arrays: dict[str, Any] = {name: part.array for name, part in beside.items() if isinstance(part, ArraySource)}
        if isinstance(array, ArraySource) and beside and len(arrays) == len(beside):
            with intact([("", array), *(("", part) for part in beside.values())]):
                result = local.reduce(array.array, op, **arrays, **chosen)
        else:
            operands: dict[str, Any] = dict(beside)
            result = local.reduce_elements(array, op, **operands, **chosen)
        if not result.null:
            check_length(result.value)
        source = read.view(dialects_of(parts), files_read(parts))
        nulls = sum(part.tally.nulls for part in parts if isinstance(part, SequentialSource))
        return cls(result, nulls, source, noticed(parts))

    @property
    def value(self) -> Value | complex | None:
        """The value; None where a null made it none."""
        return None if self.result.null else value_of(self.result)

    @property
    def words(self) -> str:
        """The value as it is printed."""
        return in_words(self.value, self.result.decimal, self.result.time)

    def document(self) -> dict[str, Any]:
        """What JSON says of it."""
        result, value = self.result, self.value
        digits = None if value is None else hex_of(value)
        time = TimeView.of(result.time)
        return {
            "value": _JSON.dump_python(value, mode="json"),
            "hex": digits.model_dump() if isinstance(digits, ComplexHex) else digits,
            **({} if time is None else {"time": time.model_dump(mode="json")}),
            **({"decimal": result.decimal} if result.decimal else {}),
            **({"fraction": str(result.fraction)} if result.fraction is not None else {}),
            "op": result.op,
            "dtype": result.dtype,
            "count": result.count,
            "strategy": result.strategy,
            "nulls": self.nulls,
            "input": self.source.model_dump(mode="json"),
            "correctly_rounded": result.correctly_rounded,
            **({"notice": self.notice} if self.notice else {}),
        }


def _to_array(
    array: Elements,
    op: str,
    beside: Mapping[str, Elements],
    chosen: Mapping[str, Any],
    fields: Mapping[str, Any],
    *,
    read: ReadHere,
    as_json: bool,
    to: Path | None = None,
) -> None:
    """Reduce on this machine, and print or write as `print_array`."""
    chosen = {**chosen, **parameters_in(fields)}
    try:
        grouping = local.grouping_of(fields)
        assert grouping is not None, (
            "there is an axis, or there are segments, a window or several values of all elements"
        )
        operands: dict[str, Any] = dict(beside)
        result = local.reduce_groups(array, op, grouping, **operands, **chosen)
        source = read.view(dialects_of([array, *beside.values()]), files_read([array]))
    except KernelError as error:
        raise fail(str(error), Exit.NOT_INSTALLED if error.reason == "unavailable" else Exit.USAGE) from None
    notice = noticed([array, *beside.values()])
    if as_json:
        values = [
            str(value) if isinstance(value, float) and not np.isfinite(value) else value for value in result.listed()
        ]
        hexes = [None if value is None else hex_of(value) for value in result.listed()]
        shown = ("op", "dtype", "strategy", "kernel", "correctly_rounded")
        details = {name: getattr(result, name) for name in shown}
        output.document(
            {"shape": list(result.shape), "values": values, "hex": hexes, "counts": list(result.counted()), **details}
            | _meant(result)
            | ({"notice": notice} if notice else {})
            | {"input": source.model_dump(mode="json")}
        )
        return
    if to is not None and to.suffix.lower() == ".csv":
        hexes = [None if value is None else hex_of(value) for value in result.listed()]
        columns = {"value": result.listed(), "hex": hexes, "count": result.counted()}
        write_csv(to, result.shape, columns | words_of(result.decimals, result.times, result.fractions))
    elif to is not None:
        array_here = meant_from(result.listed(), result.shape, result.dtype, result.decimals, result.times)
        write_array(array_here, to, of_windows="window" in fields)
    else:
        print_values(result.listed(), result.shape, result.decimals, result.times)
    listed = op_of(op, parameters_in(chosen)).listed or 1
    count = len(result.counted()) if "window" in fields else sum(result.counted()) // listed
    say_how(result, count, "this machine", notice)


def _meant(result: GroupedReduction) -> dict[str, Any]:
    """The fields of a document that only decimals and times have."""
    fields: dict[str, Any] = {} if result.decimals is None else {"decimal": list(result.decimals)}
    if result.fractions is not None:
        fields["fraction"] = [None if fraction is None else str(fraction) for fraction in result.fractions]
    if result.times is not None:
        views = map(TimeView.of, result.times)
        fields["time"] = [None if view is None else view.model_dump(mode="json") for view in views]
    return fields
