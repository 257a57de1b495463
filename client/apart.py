"""Columns that no dtype holds together: they are reduced apart, their exact states are added, and the sum is rounded
once."""

import base64
from collections.abc import Sequence

from warpfold.client import jobs
from warpfold.client.arrays import Part
from warpfold.client.exchange import Steps
from warpfold.client.job_results import ReduceResult
from warpfold.client.jobs import Follow
from warpfold.client.models import Job
from warpfold.client.reductions import Options, submit
from warpfold.contract.json_value import hex_of
from warpfold.kernels.dtypes import DTYPES, dtype_of
from warpfold.kernels.exact import ORIGIN, ExactState, value_of
from warpfold.kernels.ops import Finish, Op, op_named
from warpfold.kernels.strategy import AUTO, EXACT


def reduce_apart(parts: Sequence[Part], op: str, options: Options, follow: Follow | None) -> Steps[ReduceResult]:
    """Hand in the reductions of these parts, and wait for the value of all. Raises TypeError for an op whose states are
    not added."""
    row = _addable(op, parts, options)
    # A part may have no elements, and so no mean of its own.
    of_parts = "sum" if row.finish is Finish.MEAN else op
    handed_in: list[Job] = []
    for part in parts:
        handed_in.append((yield from submit(part.array, of_parts, other=None, dtype=None, options=options)))
    results: list[ReduceResult] = []
    for job in handed_in:
        results.append(jobs.reduction_of((yield from jobs.wait(job, None, follow))))
    real = any(dtype_of(part.array.dtype).is_float for part in parts)
    return _added(row, results, row.result_dtype(DTYPES["float64" if real else "int64"]))


def _addable(op: str, parts: Sequence[Part], options: Options) -> Op:
    """The row of `op`, if its results can be merged from exact states. Raises TypeError otherwise."""
    row = op_named(op)
    if row.terms in ORIGIN and row.sources == 1 and options.get("strategy") in (None, AUTO, EXACT):
        return row
    dtypes = " and ".join(f"{part.name} of {part.array.dtype}" for part in parts)
    raise TypeError(
        f"no dtype holds the elements of {dtypes} together, and only an exact sum, mean or norm of them can be "
        "added up; reduce them apart, or convert them first"
    )


def _added(row: Op, results: Sequence[ReduceResult], dtype: str) -> ReduceResult:
    """The result of the whole, as `dtype`, from those of its parts; device and provenance are those of the first."""
    first, state = results[0], ExactState.empty(row.terms)
    for result in results:
        assert result.state is not None, "an exact result has a state"
        state = state.merge(ExactState.from_bytes(base64.b64decode(result.state)))
    value = value_of(row, [state], dtype)
    spent = [result.timings for result in results]
    timings = first.timings.model_copy(
        update={
            "queued_ms": max(timings.queued_ms for timings in spent),
            "load_ms": sum(timings.load_ms for timings in spent),
            "kernel_ms": sum(timings.kernel_ms for timings in spent),
            "stages": {},
            "bound": None,
            "total_ms": sum(timings.total_ms for timings in spent),
        }
    )
    return first.model_copy(
        update={
            "op": row.name,
            "value": value,
            "fraction": None,
            "hex": hex_of(value),
            "dtype": dtype,
            "count": state.count,
            "timings": timings,
            "state": base64.b64encode(state.to_bytes()).decode(),
            "input": None,  # each part was sent as a file of its own
        }
    )
