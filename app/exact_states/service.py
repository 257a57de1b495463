"""Merging exact states."""

import base64
from collections.abc import Sequence

from warpfold.app.exact_states.views import Merged, MergeRequest
from warpfold.contract.json_value import check_length, hex_of
from warpfold.kernels.dtypes import dtype_named
from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.exact import ExactState, StateError, value_of
from warpfold.kernels.ops import Terms, empty_value, op_named


def merge(request: MergeRequest) -> Merged:
    """Add the states and round once. Raises InvalidInput that names the state at fault."""
    op = op_named(request.op)
    if op.terms not in (Terms.VALUES, Terms.PRODUCTS):
        raise InvalidInput(f"results of {op.name} have no exact state", "op")
    merged = _sum(request.states, op.terms)
    elements = dtype_named(request.dtype)
    dtype = op.result_dtype(elements)
    try:
        value = value_of(op, merged, dtype) if merged.count else empty_value(op, elements)
    except InvalidInput as error:
        raise InvalidInput(str(error), "states") from None
    check_length(value)
    return Merged(
        value=value,
        hex=hex_of(value),
        dtype=dtype,
        op=op.name,
        count=merged.count,
        correctly_rounded=True,
        state=base64.b64encode(merged.to_bytes()).decode(),
    )


def _sum(states: Sequence[str], terms: Terms) -> ExactState:
    merged = ExactState.empty(terms)
    for index, text in enumerate(states):
        try:
            merged = merged.merge(ExactState.from_bytes(base64.b64decode(text, validate=True)))
        except StateError as error:
            raise InvalidInput(str(error), f"states.{index}") from None
        except ValueError as error:  # of base64
            raise InvalidInput(f"not base64: {error}", f"states.{index}") from None
    return merged
