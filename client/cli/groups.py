"""Reductions to arrays on the command line: the fields that options set, and the values."""

import csv
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import typer

from warpfold.client.cli import output
from warpfold.client.cli.exits import Exit, fail
from warpfold.client.groups import CUMULATIVE
from warpfold.contract.time_view import TimeView
from warpfold.contract.wording import number_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from warpfold.client.api import Client
    from warpfold.client.live_jobs import LiveJob
    from warpfold.kernels.lowering.iso8601 import TimeValue
    from warpfold.kernels.ops import Value


def fields_from(
    axis: str | None, segments: str | None, *, keepdims: bool, window: Mapping[str, Any] = MappingProxyType({})
) -> dict[str, Any]:
    """The fields of a spec that the options set; none without --axis, --segments and a window. Raises BadParameter."""
    if window and keepdims:
        raise typer.BadParameter("is for values of whole axes, and a window keeps all axes", param_hint="--keepdims")
    return _lines_from(axis, segments, keepdims=keepdims) | ({"window": dict(window)} if window else {})


@dataclass(frozen=True, slots=True)
class WindowOptions:
    """The options that make a window."""

    rolling: int | None
    width: str | None
    expanding: bool
    centre: bool
    closed: str | None
    min_count: int | None

    def window(self, op: str) -> dict[str, Any]:
        """The window of a spec, which an op such as cumsum has by itself; none without options. Raises
        BadParameter."""
        expanding = self.expanding or op in CUMULATIVE
        kinds = {"rows": self.rolling, "width": _width(self.width), "expanding": expanding or None}
        window: dict[str, Any] = {name: value for name, value in kinds.items() if value is not None}
        if len(window) > 1:
            words = "is one of --rolling, --width, --expanding and a running value"
            raise typer.BadParameter(f"a window {words}", param_hint="--rolling" if self.rolling else "--width")
        more = {"centre": self.centre or None, "closed": self.closed, "min_count": self.min_count}
        more = {name: value for name, value in more.items() if value is not None}
        if more and not window:
            option = "--" + next(iter(more)).replace("_", "-")
            raise typer.BadParameter("needs a window, such as --rolling", param_hint=option)
        return window | more


def _width(width: str | None) -> int | str | None:
    return int(width) if width is not None and width.isdecimal() else width


def _lines_from(axis: str | None, segments: str | None, *, keepdims: bool) -> dict[str, Any]:
    if axis is not None and segments is not None:
        raise typer.BadParameter("cannot be combined with --axis", param_hint="--segments")
    if keepdims and axis is None:
        raise typer.BadParameter("needs --axis", param_hint="--keepdims")
    if axis is not None:
        axes = [int(each) if re.fullmatch("-?[0-9]+", each) else each for each in axis.split(",")]
        return {"axis": axes[0] if len(axes) == 1 else axes, **({"keepdims": True} if keepdims else {})}
    if segments is None:
        return {}
    offsets = _numbers(segments, "--segments")
    return {"segments": {"length": offsets[0]} if len(offsets) == 1 else {"offsets": offsets}}


def numbers_from(text: str | None, option: str) -> float | list[float] | None:
    """The numbers that an option names; several are a list. Raises BadParameter."""
    if text is None:
        return None
    try:
        several = [int(each) if each.strip().lstrip("-").isdigit() else float(each) for each in text.split(",")]
    except ValueError:
        raise typer.BadParameter("needs numbers, with commas between them", param_hint=option) from None
    return several if len(several) > 1 else several[0]


def _numbers(text: str, option: str) -> list[int]:
    try:
        return [int(number) for number in text.split(",")]
    except ValueError:
        raise typer.BadParameter("needs whole numbers, with commas between them", param_hint=option) from None


def print_array(client: "Client", job: "LiveJob", to: Path | None) -> None:
    """Print the values of a reduction to standard output, a row of the last axis a line, or write them to a file; and
    how they were computed to standard error. Values that are stored are downloaded."""
    from warpfold.client.jobs import array_result_of

    result = array_result_of(job)
    if to is None:
        values = result.values if result.values is not None else _listed(client.array(job))
        print_values(values, result.shape, result.decimal, result.time)
    elif result.artefact is not None:
        client.artefact(job, to)
    elif to.suffix.lower() == ".csv":
        values, counts = result.values or (), result.counts or ()
        columns = {"value": values, "hex": result.hex or (None,) * len(values), "count": counts}
        write_csv(to, result.shape, columns | words_of(result.decimal, result.time, result.fraction))
    else:
        write_array(result.to_numpy(), to, of_windows=result.kernel == "rolling")
    where = result.device.get("name", result.backend)
    say_how(result, result.count, f"{where}, {result.timings.words}", result.notice)
    if result.artefact is not None and result.artefact.part("states") is not None:
        output.say(f"job {job.id} has the states, which `warpfold merge` takes")


def _listed(array: "NDArray[Any]") -> list[Any]:
    flat: list[Any] = array.reshape(-1).tolist()
    return flat


def check_file(to: Path | None, fields: Mapping[str, Any], *, as_json: bool) -> None:
    """Raise BadParameter for a file that an array cannot be written to, and for one where there is no array."""
    if to is not None and (not fields or as_json):
        raise typer.BadParameter("needs --axis, --segments, a window or several values, and no --json", param_hint="-o")
    if to is None:
        return
    from warpfold.client.artefacts import FORMATS

    if to.suffix.lower().removeprefix(".") not in FORMATS:
        raise typer.BadParameter(f"a name should end in {', '.join(f'.{known}' for known in FORMATS)}", param_hint="-o")
    check_folder(to)


def check_folder(to: Path | None) -> None:
    """Raise BadParameter for a file that cannot be made, before anything is computed for it."""
    if to is not None and not to.parent.is_dir():
        raise typer.BadParameter(f"there is no folder {to.parent}", param_hint="-o")


def write_array(array: "NDArray[Any]", to: Path, *, of_windows: bool = False) -> None:
    """Write the values of a result that is not stored to a .npy file. A window of too few floats has NaN there."""
    if to.suffix.lower() != ".npy":
        raise fail(f"{array.size:,} values are written as .npy and .csv only", Exit.USAGE)
    import numpy as np

    if of_windows and isinstance(array, np.ma.MaskedArray) and array.dtype.kind == "f":
        array = array.filled(np.nan)
    if np.ma.isMaskedArray(array) or array.dtype.hasobject:
        raise fail("a .npy file holds no missing values, no decimals and no integers beyond 64 bits", Exit.USAGE)
    with to.open("wb") as file:
        np.save(file, array)


def write_csv(to: Path, shape: Sequence[int], columns: Mapping[str, Sequence[object]]) -> None:
    """Write a line for each value of an array of `shape`, with its index on every axis before the `columns`, as the
    service writes stored values."""
    with to.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow([*(f"axis_{axis}" for axis in range(len(shape))), *columns])
        for index, *row in zip(product(*map(range, shape)), *columns.values(), strict=True):
            writer.writerow([*index, *row])


def words_of(
    decimals: Sequence[str | None] | None,
    times: "Sequence[TimeView | TimeValue | None] | None",
    fractions: Sequence[object] | None,
) -> dict[str, Sequence[object]]:
    """The columns of decimals, of fractions and of times, where the values are any."""
    words: dict[str, Sequence[object]] = {} if decimals is None else {"decimal": decimals}
    if fractions is not None:
        words["fraction"] = fractions
    if times is not None:
        words["time"] = [None if time is None else time.iso for time in times]
    return words


def print_values(
    values: "Sequence[Value | None]",
    shape: Sequence[int],
    decimals: Sequence[str | None] | None = None,
    times: "Sequence[TimeView | TimeValue | None] | None" = None,
) -> None:
    """Print the values of an array, a row of the last axis a line: decimals in full, and times in ISO 8601."""
    width = shape[-1] if len(shape) > 1 else 1
    words = decimals if times is None else [None if time is None else time.iso for time in times]
    shown = (value if value is None else repr(value) for value in values) if words is None else words
    texts = [json.dumps(None) if text is None else text for text in shown]
    for at in range(0, len(texts), max(1, width)):
        typer.echo("\t".join(texts[at : at + width]))


def say_how(result: Any, count: int, where: str, notice: str | None) -> None:
    """Print how the values were computed to standard error."""
    rounded = "correctly rounded" if result.correctly_rounded else "not correctly rounded"
    shape = " × ".join(map(str, result.shape)) or "one value"
    output.say(
        f"{result.op} of {number_of('element', count)} as {result.dtype}, shape {shape}; {result.strategy} by "
        f"{result.kernel}, {rounded}; {where}{output.noticed(notice)}"
    )
