"""Reductions of all arrays of an iterator, in bounded memory: the arrays go in batches, of which two are in hand."""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from warpfold.client import batches, reductions
from warpfold.client.batches import Batch
from warpfold.client.errors import JobFailed, NotHandedIn, Refused
from warpfold.client.exchange import Steps
from warpfold.client.job_results import ReduceResult
from warpfold.client.reductions import Options
from warpfold.kernels.errors import KernelError

WINDOW = 256
"""Reductions in a batch."""

_WINDOW_BYTES = 4 << 20
_OF_ONE = (TypeError, ValueError, OSError, KernelError, Refused)
"""The errors of an array that cannot be handed in, or of its options."""
_OF_A_REQUEST = frozenset({400, 404, 409, 413, 415, 422})
"""The statuses of refusals for what a request holds. Others are for who sent it, or for the time being."""
_SPEC = re.compile(r"specs\[(\d+)\]\.?(.*)")


@dataclass(frozen=True, slots=True)
class Window:
    """Some arrays in a row: the batch of their reductions, None where no array could be handed in, and the errors of
    those that could not, by their places in the row."""

    count: int
    batch: Batch | None
    refused: Mapping[int, NotHandedIn]


def window(arrays: Iterator[object], op: str, options: Options, *, rehash: bool) -> Steps[Window | None]:
    """Hand in the reductions of the next arrays; returns None if the iterator has no more. Large arrays are uploaded
    one by one, so that at most one of them is held."""
    specs: dict[int, dict[str, Any]] = {}
    refused: dict[int, NotHandedIn] = {}
    size = count = 0
    for array in arrays:
        try:
            spec = yield from reductions.spec(array, op, options=options, rehash=rehash)
        except _OF_ONE as error:
            if isinstance(error, Refused) and error.status not in _OF_A_REQUEST:
                raise
            refused[count] = NotHandedIn(error)
        else:
            specs[count] = spec
            size += len(json.dumps(spec["source"]))
        count += 1
        if count >= WINDOW or size >= _WINDOW_BYTES:
            break
    if not count:
        return None
    return Window(count, (yield from _handed_in(specs, refused)), refused)


def _handed_in(specs: dict[int, dict[str, Any]], refused: dict[int, NotHandedIn]) -> Steps[Batch | None]:
    """Hand in `specs` as one batch. Those that the service refuses by their number become `refused`, and the others
    are handed in without them."""
    while specs:
        try:
            return (yield from batches.submit(specs.values(), name="", tags={}, key=None))
        except Refused as error:
            places = list(specs)
            named = {int(match[1]) for each in error.errors if (match := _SPEC.match(each.field)) is not None}
            if not named:
                raise
            for number in named:
                refused[places[number]] = NotHandedIn(error)
                del specs[places[number]]
    return None


def reduced(window: Window) -> Steps[list[ReduceResult | JobFailed]]:
    """The outcome of each reduction of a window, in the order of the arrays: its result, or its error."""
    outcomes = []
    if window.batch is not None:
        yield from batches.wait(window.batch)
        outcomes = yield from batches.outcomes(window.batch.id)
    following = iter(outcomes)
    return [window.refused.get(number) or _result(next(following)) for number in range(window.count)]


def _result(outcome: batches.JobOutcome) -> ReduceResult | JobFailed:
    if isinstance(outcome.result, ReduceResult):
        return outcome.result
    return JobFailed(outcome.id, outcome.status, outcome.reason, outcome.error)


def cancelled(window: Window) -> Steps[None]:
    """Cancel what is left of a window."""
    if window.batch is not None:
        yield from batches.cancel(window.batch.id)
