"""Exact states over the wire: states of any jobs and machines are merged to one state and its value, and tables of
states by a job of kind `merge`."""

import base64
from collections.abc import Sequence
from typing import Annotated, Self

from fastapi import APIRouter, Request
from pydantic import BaseModel, ConfigDict, Field, StringConstraints, model_validator
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from warpfold.app.http.bearer import User
from warpfold.app.http.context import Using
from warpfold.app.http.errors import BadRequest, Forbidden, Invalid, TooLarge, TooMany, UnsupportedMedia
from warpfold.app.http.openapi import answers
from warpfold.app.http.requests import JsonRoute
from warpfold.app.jobs.endpoints import Prefer, submitted
from warpfold.app.jobs.views import JobView
from warpfold.contract.fields import DTypeName, Listed, OpName
from warpfold.contract.json_value import JsonValue, check_length, hex_of
from warpfold.contract.kinds.merge import MaxGroupsField, MergeSpec, MinCountField, SortField, TablesField
from warpfold.kernels.dtypes import dtype_named
from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.exact import ExactState, StateError, value_of
from warpfold.kernels.ops import Terms, empty_value, op_named
from warpfold.kernels.parts.keyed import MOST_GROUPS

MOST_STATES = 10_000
_OF_TABLES = frozenset({"sort", "min_count", "max_groups"})


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
        Listed[Annotated[str, StringConstraints(max_length=4096)]] | None,
        Field(
            min_length=1, max_length=MOST_STATES, description="The states in base64, as results have them in `state`."
        ),
    ] = None
    tables: TablesField | None = None
    sort: SortField = True
    min_count: MinCountField = 0
    max_groups: MaxGroupsField = MOST_GROUPS
    op: OpName = Field("sum", description="The op that the sum of all terms is finished to.")
    dtype: DTypeName = Field("float64", description="The dtype of the elements that the states were made of.")

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.states is None and self.tables is None:
            raise InvalidInput("Field required", "states")
        if self.tables is not None:
            odd = self.model_fields_set & {"states", "op", "dtype"}
            if odd:
                raise InvalidInput("does not go with `tables`, which say what their states are of", min(odd))
        elif odd := self.model_fields_set & _OF_TABLES:
            raise InvalidInput("is for `tables`, which this request does not have: leave it out", min(odd))
        return self

    def spec(self) -> MergeSpec:
        """The job that merges the tables."""
        fields = self.model_dump(include={"tables", *(self.model_fields_set & _OF_TABLES)})
        return MergeSpec.model_validate({"kind": "merge", **fields})


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
    total = _sum(request.states or (), op.terms)
    elements = dtype_named(request.dtype)
    dtype = op.result_dtype(elements)
    try:
        value = value_of(op, [total], dtype) if total.count else empty_value(op, elements)
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
        except ValueError as error:  # the text is not base64
            raise InvalidInput(f"is not base64: {error}", f"states.{index}") from None
    return total


router = APIRouter(prefix="/v1/states", tags=["exact states"], route_class=JsonRoute)

_PROBLEMS = (BadRequest, Forbidden, TooLarge, UnsupportedMedia, Invalid, TooMany)


@router.post(
    "/merge",
    response_model=Merged,
    summary="Merge exact states",
    responses={
        202: {"model": JobView, "description": "The tables are merged by this job."},
        **answers(*_PROBLEMS),
    },
)
async def merge_states(
    *, request: MergeRequest, http: Request, user: User, context: Using, prefer: Prefer = None
) -> Merged | Response:
    """Add exact states of any jobs and machines, in any order. The state and the value have the bits that one job over
    all the elements would have given.

    `tables` of states are merged group by group, by a job of kind `merge`: the answer is 202 with that job. With
    `Prefer: wait=N` the answer comes when the job has ended, or after N seconds.
    """
    if request.tables is None:
        # Thousands of states take tenths of a second.
        return await run_in_threadpool(merged, request)
    return await submitted(http, user, context, request.spec(), prefer=prefer)
