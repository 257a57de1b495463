"""Reductions of all arrays of an iterator, in bounded memory: the arrays go in batches, of which the service has two at
a time."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from warpfold.client import batches, reductions
from warpfold.client.batches import SPEC_FIELD, Batch
from warpfold.client.errors import JobFailed, NotHandedIn, Refused
from warpfold.client.exchange import Steps
from warpfold.client.job_results import ReduceResult
from warpfold.client.reductions import Options
from warpfold.kernels.errors import KernelError

WINDOW = 256
"""Reductions in a batch."""

_WINDOW_BYTES = 4 << 20
"""The bytes of sources after which a batch takes no more reductions."""

_ARRAY_ERRORS = (TypeError, ValueError, OSError, KernelError, Refused)
"""The errors of an array that cannot be handed in, or of its options."""

_REQUEST_STATUSES = frozenset({400, 404, 409, 413, 415, 422})
"""The statuses of refusals for what a request holds. Other statuses concern its sender, or pass with time."""


@dataclass(frozen=True, slots=True)
class Window:
    """Neighbouring arrays of the iterator: how many they are; the batch of their reductions, None where no array could
    be handed in; and the errors of the arrays that could not, by their places among these arrays."""

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
        except _ARRAY_ERRORS as error:
            if isinstance(error, Refused) and error.status not in _REQUEST_STATUSES:
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
    """Hand in `specs` as one batch. Specs that the service refuses by their number move to `refused`, and the other
    specs are handed in without them."""
    while specs:
        try:
            return (yield from batches.submit(specs.values(), name="", tags={}, key=None))
        except Refused as error:
            places = list(specs)
            named = {int(match[1]) for each in error.errors if (match := SPEC_FIELD.match(each.field)) is not None}
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
