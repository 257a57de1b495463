"""Reductions to one value on the command line."""

from typing import TYPE_CHECKING

import typer

from warpfold.client.answer import Input
from warpfold.client.cli import output
from warpfold.client.job_results import ReduceResult
from warpfold.contract.json_value import ComplexHex
from warpfold.contract.timings import bound_in_words
from warpfold.contract.wording import number_of

if TYPE_CHECKING:
    from fractions import Fraction

    from warpfold.client.models import Job
    from warpfold.contract.inputs import InputView
    from warpfold.kernels.backend import Reduction


def print_value(job: "Job", *, fingerprint: bool) -> None:
    """Print the value of a reduction to standard output, and how it was computed to standard error."""
    from warpfold.client.jobs import result_of

    result = result_of(job)
    assert isinstance(result, ReduceResult), "the job is a reduction"
    typer.echo(result.words)
    where = result.device.get("name", result.backend)
    bound = bound_in_words(result.timings.model_dump())
    output.say(
        f"{described(result)}; {where}, {result.timings.words}"
        + (f", {bound}" if bound else "")
        + (f"; {_digits(result.hex)}" if result.hex else "")
        + exactly(result.fraction)
        + left_out(result.nulls, result.input, null=result.value is None)
        + number_of_files(result.input)
        + ("" if result.input is None else output.read_by(result.input.dialects))
        + output.noticed(result.notice)
        + fingerprinted(result.input.fingerprint if fingerprint and result.input is not None else None)
    )


def described(result: "Reduction | ReduceResult") -> str:
    """A phrase that says what a value is, and how it was rounded."""
    rounded = "correctly rounded" if result.correctly_rounded else "not correctly rounded"
    return f"{result.op} of {number_of('element', result.count)} as {result.dtype}, {result.strategy}, {rounded}"


def exactly(fraction: "Fraction | None") -> str:
    """A phrase with a value that is a fraction."""
    return "" if fraction is None else f"; exactly {fraction}"


def fingerprinted(fingerprint: str | None) -> str:
    """A phrase with the SHA-256 of what was read, where it was asked for."""
    return f"; SHA-256 {fingerprint}" if fingerprint else ""


def number_of_files(read: "InputView | Input | None") -> str:
    """A phrase about several files that were one array."""
    return f"; {read.count:,} files" if read is not None and read.count > 1 else ""


def left_out(nulls: int, read: "InputView | Input | None", *, null: bool) -> str:
    """A phrase about the nulls, and of text what they are; with `null` they made the value null."""
    texts = [] if read is None else [text or "an empty cell" for text in read.null_words or ()]
    words = f" ({', '.join(texts)})" if texts else ""
    return f"; {number_of('null', nulls)} {'met' if null else 'left out'}{words}" if nulls else ""


def _digits(hexadecimal: str | ComplexHex) -> str:
    """The hexadecimal digits of a value, or of the two parts of one."""
    return hexadecimal if isinstance(hexadecimal, str) else f"{hexadecimal.re} + {hexadecimal.im} i"
