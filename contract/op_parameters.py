"""Parameters of ops in specs: the quantiles that are asked for and how they are interpolated, the places and numbers of
elements that are picked, and the bins of histograms."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from pydantic import Field, StrictInt
from pydantic.config import JsonDict

from warpfold.contract.fields import MAX_ELEMENTS, Parameter
from warpfold.contract.frozen import Frozen
from warpfold.contract.unions import said_as
from warpfold.kernels.dtypes import DType
from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.ops import OPS, Op, Parameters, op_named
from warpfold.kernels.ops.parameters import MOST_BINS, MOST_PICKED, NO_DIGITS
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

Bins = Annotated[
    StrictInt | Annotated[tuple[Parameter, ...], Field(min_length=2, max_length=MOST_BINS + 1)],
    said_as(f"Should be a number of bins from 1 to {MOST_BINS:,}, or a list of 2 to {MOST_BINS + 1:,} edges"),
]

PlaceField = Annotated[
    StrictInt | None,
    Field(
        exclude_if=lambda n: n is None,
        description="The place of the `nth` element, from 0 on; from the last one, −1, back where it is negative.",
    ),
]
PickedField = Annotated[
    StrictInt | None,
    Field(
        exclude_if=lambda k: k is None,
        description=f"How many elements `top_k` and its like give, side by side: 1 to {MOST_PICKED:,}. If it is left "
        "out, they give the first one alone.",
    ),
]
BinsField = Annotated[
    Bins | None,
    Field(
        exclude_if=lambda bins: bins is None,
        description="The rising edges of the bins of a `histogram`, or the number of equal bins in `range`. If it is "
        "left out, all numbers are one bin.",
    ),
]
RangeField = Annotated[
    tuple[Parameter, Parameter] | None,
    Field(exclude_if=lambda ends: ends is None, description="The ends of so many `bins` of a `histogram`."),
]


MOST_DIGITS = 1_000
DigitsField = Annotated[
    Annotated[StrictInt, Field(ge=1, le=MOST_DIGITS)] | None,
    Field(
        exclude_if=lambda digits: digits is None,
        description="For a mean, a median or a quantile of decimals or integers: how many significant digits `decimal` "
        "of the result has, or `words` of groups, rounded to nearest, ties to even.",
    ),
]


def check_digits(
    ops: Sequence[Op], digits: int | None, refusing: Mapping[str, bool], dtype: DType | None = None
) -> None:
    """Raise InvalidInput naming "digits" where none of the ops has a value without an end, or where parts of a spec
    that are `refusing` stand beside, or where the elements are floats of a known `dtype`."""
    if digits is None:
        return
    if not any(op.endless for op in ops):
        raise InvalidInput("mean, median and quantile alone are rounded to digits: other values have all", "digits")
    if dtype is not None and dtype.is_float:
        raise InvalidInput(NO_DIGITS, "digits")
    beside = next((name for name, is_there in refusing.items() if is_there), None)
    if beside is not None:
        raise InvalidInput(f"digits do not go with {beside} so far", "digits")


class OpFields(Frozen):
    """The parameters of an op as fields."""

    q: QuantilesField = None
    method: MethodField = None
    n: PlaceField = None
    k: PickedField = None
    bins: BinsField = None
    range: RangeField = None


def op_with_parameters(spec: Any) -> Op:
    """The op of a spec, or of an aggregation, with its parameters. Raises InvalidInput naming one."""
    return op_named(spec.op).having(Parameters(**{name: getattr(spec, name) for name in Parameters.names()}))


def op_in_words(stored: Any) -> str:
    """The op of a stored spec, with its parameters."""
    op = str(stored.get("op"))
    if op not in OPS or not OPS[op].takes:
        return op
    if "q" not in OPS[op].takes:
        return " ".join([op, *(_in_words(stored[name]) for name in OPS[op].takes if stored.get(name) is not None)])
    q = stored.get("q", OPS[op].parameters.q)
    quantiles = ", ".join(map(str, q)) if isinstance(q, list | tuple) else str(q)
    method = stored.get("method")
    return f"{op} {quantiles}" + (f" ({method})" if method else "")


def _in_words(value: Any) -> str:
    """A parameter in words: of a list its ends."""
    return f"{value[0]}…{value[-1]}" if isinstance(value, list | tuple) else str(value)
