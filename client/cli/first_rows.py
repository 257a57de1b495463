"""The first values of a result that has many: those of an array with their indices, and those of groups with keys."""

import math
from collections.abc import Iterable, Sequence
from itertools import islice, product

from warpfold.client.cli import output
from warpfold.client.group_table import GroupTable
from warpfold.client.job_results import ReduceArrayResult

_MOST = 20


def print_first(result: ReduceArrayResult | GroupTable, job_id: str) -> None:
    """Print the first values, and say which command gives all of them if there are more."""
    count = result.groups if isinstance(result, GroupTable) else math.prod(result.shape)
    if result.artefact is not None:
        names, values = result.artefact.preview_columns, result.artefact.preview
        rows = _rows(values)
    elif isinstance(result, GroupTable):
        names = (*(key.name for key in result.keys), *(column.name for column in result.columns))
        rows = _rows(zip(*_columns(result), strict=True))
    else:
        names = (*(f"axis_{axis}" for axis in range(len(result.shape))), "value")
        indices = product(*map(range, result.shape))
        rows = _rows((*index, value) for index, value in zip(indices, _values(result), strict=True))
    if rows:
        keys = len(result.keys) if isinstance(result, GroupTable) else 0
        output.table(names, rows, right=names[keys:])
    if result.artefact is not None:
        output.say(f"`warpfold artefact {job_id} -o all.parquet` downloads all {count:,}")
    elif count > _MOST:
        output.say(f"these are the first {_MOST} of {count:,}; `warpfold show {job_id} --json` shows all")


def _columns(result: GroupTable) -> list[Sequence[object]]:
    return [*(key.values or () for key in result.keys), *(one.words or one.values or () for one in result.columns)]


def _values(result: ReduceArrayResult) -> Sequence[object]:
    if result.time is not None:
        return [None if time is None else time.iso for time in result.time]
    return result.decimal or result.values or ()


def _rows(values: Iterable[Iterable[object]]) -> list[list[str]]:
    return [[_in_full(value) for value in row] for row in islice(values, _MOST)]


def _in_full(value: object) -> str:
    """A value with all its digits, where a table would round a number."""
    return "" if value is None else str(value).lower() if isinstance(value, bool) else str(value)
