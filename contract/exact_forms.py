"""Exact forms of a value that float64 rounds: a decimal in full, and a fraction."""

from fractions import Fraction
from typing import Annotated

from pydantic import Field, PlainSerializer, WithJsonSchema

FractionText = Annotated[
    Fraction,
    PlainSerializer(str, when_used="json"),
    WithJsonSchema({"type": "string", "pattern": "^-?[0-9]+(/[0-9]+)?$", "examples": ["7/3"]}),
]
"""A rational number: Python's own here, and in JSON its text, which is that of an integer where it is one."""

_LEFT_OUT = Field(exclude_if=lambda form: form is None)

DecimalField = Annotated[
    str | None,
    _LEFT_OUT,
    Field(
        description="The exact value of a column of decimals, with all its digits; `value` is the float64 nearest to "
        "it. A mean or a quantile has it where the request asks for `digits`, and is rounded to so many.",
    ),
]
DecimalsField = Annotated[
    tuple[str | None, ...] | None,
    _LEFT_OUT,
    Field(description="The exact values of decimals in full, of which `values` are the nearest float64."),
]
FractionField = Annotated[
    FractionText | None,
    _LEFT_OUT,
    Field(
        description="A mean of integers or decimals exactly, such as 7/3, and a quantile of decimals. A quantile of "
        "integers has it where the request asks for `digits`.",
    ),
]
FractionsField = Annotated[
    tuple[FractionText | None, ...] | None,
    _LEFT_OUT,
    Field(
        description="Means of integers and decimals exactly, such as 7/3, and quantiles of decimals. Quantiles of "
        "integers have it where the request asks for `digits`.",
    ),
]
