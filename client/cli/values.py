"""Reductions to one value on the command line."""

from collections.abc import Mapping
from typing import Any

import typer
from pydantic import TypeAdapter

from warpfold.client import local
from warpfold.client.cli import output
from warpfold.client.cli.exits import Exit, fail
from warpfold.client.cli.opening import ReadHere
from warpfold.client.job_results import Input, ReduceResult, in_words
from warpfold.client.jobs import result_of
from warpfold.client.models import Job
from warpfold.contract.inputs import InputView
from warpfold.contract.json_value import ComplexHex, JsonComplex, JsonValue, check_length, hex_of, value_of
from warpfold.contract.time_view import TimeView
from warpfold.contract.timings import bound_in_words
from warpfold.contract.wording import number_of
from warpfold.kernels.backend import Reduction
from warpfold.kernels.errors import KernelError
from warpfold.kernels.ops import Value
from warpfold.kernels.source import ArraySource
from warpfold.kernels.sources.file_checks import intact
from warpfold.kernels.sources.sequential import Elements, SequentialSource, noticed, null_words_of

_JSON: TypeAdapter[Value | complex | None] = TypeAdapter(JsonValue | JsonComplex | None)
"""Writes a value as JSON can say it."""


def print_value(job: Job, *, fingerprint: bool) -> None:
    """Print the value of a reduction to standard output, and how it was computed to standard error."""
    result = result_of(job)
    assert isinstance(result, ReduceResult), "the job is a reduction"
    typer.echo(result.words)
    where = result.device.get("name", result.backend)
    bound = bound_in_words(result.timings.model_dump())
    output.say(
        f"{_described(result)}; {where}, {result.timings.words}"
        + (f", {bound}" if bound else "")
        + (f"; {_digits(result.hex)}" if result.hex else "")
        + _left(result.nulls, result.input, null=result.value is None)
        + output.noticed(result.notice)
        + _named(result.input.fingerprint if fingerprint and result.input is not None else None)
    )


def reduce_locally(
    array: Elements,
    op: str,
    beside: Mapping[str, Elements],
    chosen: Mapping[str, Any],
    *,
    read: ReadHere,
    as_json: bool,
) -> None:
    """Reduce on this machine, and print as `print_value`, or with `as_json` a document."""
    parts = [array, *beside.values()]
    try:
        # The dtypes of both arrays may be made one.
        arrays: dict[str, Any] = {name: part.array for name, part in beside.items() if isinstance(part, ArraySource)}
        if isinstance(array, ArraySource) and beside and len(arrays) == len(beside):
            with intact([("", array), *(("", part) for part in beside.values())]):
                result = local.reduce(array.array, op, **arrays, **chosen)
        else:
            operands: dict[str, Any] = dict(beside)
            result = local.reduce_elements(array, op, **operands, **chosen)
        null = result.null
        if not null:
            check_length(result.value)
        source = read.view(null_words_of(parts))
    except KernelError as error:
        code = Exit.NOT_INSTALLED if error.reason == "unavailable" else Exit.USAGE
        raise fail(str(error), code) from None
    value = None if null else value_of(result)
    nulls = sum(part.tally.nulls for part in parts if isinstance(part, SequentialSource))
    notice = noticed(parts)
    if as_json:
        output.document(_document(result, value, nulls, source) | ({"notice": notice} if notice else {}))
        return
    typer.echo(in_words(value, result.decimal, result.time))
    output.say(
        f"{_described(result)}; this machine"
        + _left(nulls, source, null=null)
        + output.noticed(notice)
        + _named(source.fingerprint if read.fingerprint else None)
    )


def _document(result: Reduction, value: Value | complex | None, nulls: int, source: InputView) -> dict[str, Any]:
    """What JSON says of a reduction, its value, the nulls that it met, and the files that were read."""
    digits = None if value is None else hex_of(value)
    time = TimeView.of(result.time)
    return {
        "value": _JSON.dump_python(value, mode="json"),
        "hex": digits.model_dump() if isinstance(digits, ComplexHex) else digits,
        **({} if time is None else {"time": time.model_dump(mode="json")}),
        **({"decimal": result.decimal} if result.decimal else {}),
        "op": result.op,
        "dtype": result.dtype,
        "count": result.count,
        "strategy": result.strategy,
        "nulls": nulls,
        "input": source.model_dump(mode="json"),
        "correctly_rounded": result.correctly_rounded,
    }


def _described(result: Reduction | ReduceResult) -> str:
    """A phrase that says what a value is, and how it was rounded."""
    rounded = "correctly rounded" if result.correctly_rounded else "not correctly rounded"
    return f"{result.op} of {number_of('element', result.count)} as {result.dtype}, {result.strategy}, {rounded}"


def _named(fingerprint: str | None) -> str:
    return f"; SHA-256 {fingerprint}" if fingerprint else ""


def _left(nulls: int, read: InputView | Input | None, *, null: bool) -> str:
    """A phrase about the nulls, and of text what they are; with `null` they made the value null."""
    texts = [] if read is None else [text or "an empty cell" for text in read.null_words or ()]
    words = f" ({', '.join(texts)})" if texts else ""
    return f"; {number_of('null', nulls)} {'met' if null else 'left out'}{words}" if nulls else ""


def _digits(hexadecimal: str | ComplexHex) -> str:
    """The hexadecimal digits of a value, or of the two parts of one."""
    return hexadecimal if isinstance(hexadecimal, str) else f"{hexadecimal.re} + {hexadecimal.im} i"
