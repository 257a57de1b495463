"""Exact states over HTTP."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from warpfold.contract.fields import DTypeName, Listed, OpName
from warpfold.contract.json_value import JsonValue

MOST_STATES = 10_000


class MergeRequest(BaseModel):
    """Exact states to be added."""

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
        Field(min_length=1, max_length=MOST_STATES, description="base64, as in the `state` of results"),
    ]
    op: OpName = Field("sum", description="what the sum of the terms is finished to")
    dtype: DTypeName = Field("float64", description="of the elements that the states were made of")


class Merged(BaseModel):
    """The sum of exact states, rounded once."""

    value: JsonValue
    hex: str | None = Field(description="what Python's float.hex of the value prints; null for integers")
    dtype: str = Field(description='of the value; "integer" is an integer of any size')
    op: str
    count: int = Field(description="terms in all states together")
    correctly_rounded: bool
    state: str = Field(description="base64 of the merged state")
