"""Parameters of ops in specs: the quantiles that are asked for, and how they are interpolated."""

from typing import Annotated, Any

from pydantic import Field
from pydantic.config import JsonDict

from warpfold.contract.fields import MAX_ELEMENTS, Parameter
from warpfold.contract.unions import said_as
from warpfold.kernels.ops import OPS
from warpfold.kernels.ops.quantiles import METHODS, MOST_QUANTILES


def _offer_methods(schema: JsonDict) -> None:
    schema["enum"] = list(METHODS)


Quantiles = Annotated[
    Parameter | Annotated[tuple[Parameter, ...], Field(min_length=1, max_length=MOST_QUANTILES)],
    said_as(f"Should be a number from 0 to 1, or a list of 1 to {MOST_QUANTILES:,} such numbers"),
]

DdofField = Annotated[
    int,
    Field(
        ge=0,
        le=MAX_ELEMENTS,
        strict=True,
        description="The lost degrees of freedom: `var`, `std`, `sem` and `cov` divide by n − ddof. With 1 `skew` and "
        "`kurtosis` are those of a sample.",
    ),
]

QuantilesField = Annotated[
    Quantiles | None,
    Field(
        exclude_if=lambda q: q is None,
        description="The share of the elements that lies below a `quantile`, from 0 to 1; 0.5 if it is left out. A "
        "number is the decimal that is written: 0.1 is one tenth. A list asks for a value of each.",
    ),
]
MethodField = Annotated[
    Annotated[str, Field(max_length=64, json_schema_extra=_offer_methods)] | None,
    Field(
        exclude_if=lambda method: method is None,
        description="How a `quantile` between two elements is made, called as in NumPy; `linear` if it is left out.",
    ),
]


def op_in_words(stored: Any) -> str:
    """The op of a stored spec, with its parameters."""
    op = str(stored.get("op"))
    if op not in OPS or not OPS[op].takes:
        return op
    q = stored.get("q", OPS[op].parameters.q)
    quantiles = ", ".join(map(str, q)) if isinstance(q, list | tuple) else str(q)
    method = stored.get("method")
    return f"{op} {quantiles}" + (f" ({method})" if method else "")
