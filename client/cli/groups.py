"""Reductions along axes and by segments on the command line."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import typer

from warpfold.client import local
from warpfold.client.cli import output
from warpfold.client.cli.exits import Exit
from warpfold.client.cli.session import fail
from warpfold.client.groups import grouping_of
from warpfold.client.models import ReduceArrayResult
from warpfold.contract.json_value import hex_of
from warpfold.kernels.errors import KernelError
from warpfold.kernels.ops import Value
from warpfold.kernels.sequential import Elements


def fields_from(axis: str | None, segments: str | None, *, keepdims: bool) -> dict[str, Any]:
    """The fields of a spec that the options say; none without --axis and --segments. Raises BadParameter."""
    if axis is not None and segments is not None:
        raise typer.BadParameter("cannot be combined with --axis", param_hint="--segments")
    if keepdims and axis is None:
        raise typer.BadParameter("needs --axis", param_hint="--keepdims")
    if axis is not None:
        axes = _numbers(axis, "--axis")
        return {"axis": axes[0] if len(axes) == 1 else axes, **({"keepdims": True} if keepdims else {})}
    if segments is None:
        return {}
    offsets = _numbers(segments, "--segments")
    return {"segments": {"length": offsets[0]} if len(offsets) == 1 else {"offsets": offsets}}


def _numbers(text: str, option: str) -> list[int]:
    try:
        return [int(number) for number in text.split(",")]
    except ValueError:
        raise typer.BadParameter("needs whole numbers, with commas between them", param_hint=option) from None


def print_array(result: ReduceArrayResult) -> None:
    """Print the values to standard output, a row of the last axis a line, and how they were computed to standard
    error."""
    _print_values(result.values, result.shape)
    where = result.device.get("name", result.backend)
    _say(result, f"{where}, {result.timings.kernel_ms:.3f} ms")


def reduce_groups_locally(
    array: Elements,
    op: str,
    other: Elements | None,
    chosen: Mapping[str, Any],
    fields: Mapping[str, Any],
    *,
    as_json: bool,
) -> None:
    """Reduce on this machine, and print as `print_array`."""
    grouping = grouping_of(fields)
    assert grouping is not None, "there is an axis or there are segments"
    try:
        result = local.reduce_groups(array, op, grouping, other=other, **chosen)
    except KernelError as error:
        raise fail(str(error), Exit.NOT_INSTALLED if error.reason == "unavailable" else Exit.USAGE) from None
    if as_json:
        values = [
            str(value) if isinstance(value, float) and not np.isfinite(value) else value for value in result.values
        ]
        hexes = [None if value is None else hex_of(value) for value in result.values]
        told = ("op", "dtype", "strategy", "kernel", "correctly_rounded")
        facts = {name: getattr(result, name) for name in told}
        output.document(
            {"shape": list(result.shape), "values": values, "hex": hexes, "counts": list(result.counts), **facts}
        )
        return
    _print_values(result.values, result.shape)
    _say(result, "this machine")


def _print_values(values: Sequence[Value | None], shape: Sequence[int]) -> None:
    width = shape[-1] if len(shape) > 1 else 1
    texts = [json.dumps(None) if value is None else repr(value) for value in values]
    for at in range(0, len(texts), max(1, width)):
        typer.echo("\t".join(texts[at : at + width]))


def _say(result: Any, where: str) -> None:
    rounded = "correctly rounded" if result.correctly_rounded else "not correctly rounded"
    shape = " × ".join(map(str, result.shape)) or "one value"
    output.say(
        f"{result.op} of {sum(result.counts):,} elements as {result.dtype}, shape {shape}; {result.strategy} by "
        f"{result.kernel}, {rounded}; {where}"
    )
