"""Exact states over the wire: states of any jobs and machines are merged to one state and its value."""

import base64
from collections.abc import Sequence
from typing import Annotated

from fastapi import APIRouter
from pydantic import BaseModel, ConfigDict, Field, StringConstraints
from starlette.concurrency import run_in_threadpool

from warpfold.app.http.bearer import User
from warpfold.app.http.errors import BadRequest, Forbidden, Invalid, TooLarge, UnsupportedMedia
from warpfold.app.http.openapi import answers
from warpfold.app.http.requests import JsonRoute
from warpfold.contract.fields import DTypeName, Listed, OpName
from warpfold.contract.json_value import JsonValue, check_length, hex_of
from warpfold.kernels.dtypes import dtype_named
from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.exact import ExactState, StateError, value_of
from warpfold.kernels.ops import Terms, empty_value, op_named

MOST_STATES = 10_000


class MergeRequest(BaseModel):
    """Exact states to merge."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        json_schema_extra={
            "examples": [
                {
                    "op": "sum",
                    "dtype": "float64",
                    "states": [
                        "V0ZYUwEACAABAAAAAAAAACEAAQAAAAAAAAAGAA==",
                        "V0ZYUwEACAABAAAAAAAAACEAAQAAAAAAAAAIAA==",
                    ],
                }
            ]
        },
    )

    states: Annotated[
        Listed[Annotated[str, StringConstraints(max_length=4096)]],
        Field(
            min_length=1, max_length=MOST_STATES, description="The states in base64, as results have them in `state`."
        ),
    ]
    op: OpName = Field("sum", description="The op that the sum of all terms is finished to.")
    dtype: DTypeName = Field("float64", description="The dtype of the elements that the states were made of.")


class Merged(BaseModel):
    """The sum of exact states, rounded once."""

    value: JsonValue
    hex: str | None = Field(description="The value as Python's float.hex prints it; null for integers.")
    dtype: str = Field(description='The dtype of the value; "integer" is an integer of any size.')
    op: str
    count: int = Field(description="The number of terms in all states together.")
    correctly_rounded: bool
    state: str = Field(description="The merged state in base64.")


def merged(request: MergeRequest) -> Merged:
    """Add the states and round once. Raises InvalidInput that names the state at fault."""
    op = op_named(request.op)
    if op.terms not in (Terms.VALUES, Terms.PRODUCTS):
        raise InvalidInput(f"results of {op.name} have no exact state", "op")
    total = _sum(request.states, op.terms)
    elements = dtype_named(request.dtype)
    dtype = op.result_dtype(elements)
    try:
        value = value_of(op, total, dtype) if total.count else empty_value(op, elements)
    except InvalidInput as error:
        raise InvalidInput(str(error), "states") from None
    check_length(value)
    return Merged(
        value=value,
        hex=hex_of(value),
        dtype=dtype,
        op=op.name,
        count=total.count,
        correctly_rounded=True,
        state=base64.b64encode(total.to_bytes()).decode(),
    )


def _sum(states: Sequence[str], terms: Terms) -> ExactState:
    total = ExactState.empty(terms)
    for index, text in enumerate(states):
        try:
            total = total.merge(ExactState.from_bytes(base64.b64decode(text, validate=True)))
        except StateError as error:
            raise InvalidInput(str(error), f"states.{index}") from None
        except ValueError as error:  # of base64
            raise InvalidInput(f"not base64: {error}", f"states.{index}") from None
    return total


router = APIRouter(prefix="/v1/states", tags=["exact states"], route_class=JsonRoute)

_PROBLEMS = (BadRequest, Forbidden, TooLarge, UnsupportedMedia, Invalid)


@router.post("/merge", summary="Merge exact states", responses=answers(*_PROBLEMS))
async def merge(request: MergeRequest, user: User) -> Merged:
    """Add exact states of any jobs and machines, in any order, to the state and the value that one job over all their
    elements would have given: the same bits."""
    # Thousands of states take tenths of a second.
    return await run_in_threadpool(merged, request)
