"""Types of the fields of specs, which every kind of job shares: names from the catalogues, numbers, tags."""

from collections.abc import Callable, Iterable, Mapping
from typing import Annotated, Literal, TypeVar

from pydantic import (
    AfterValidator,
    FailFast,
    Field,
    StrictBool,
    StrictFloat,
    StrictInt,
    StringConstraints,
)
from pydantic.config import JsonDict

from warpfold.contract.frozen import Frozen
from warpfold.contract.unions import said_as
from warpfold.contract.webhook import Webhook
from warpfold.kernels.catalog import strategy_names
from warpfold.kernels.dtypes import DTYPES
from warpfold.kernels.errors import unknown
from warpfold.kernels.generate import DISTRIBUTIONS
from warpfold.kernels.ops import OPS

T = TypeVar("T")

MAX_ELEMENTS = 1 << 40
MAX_TIMEOUT_S = 7 * 24 * 3600
MAX_TAGS = 32


def _one_of(known: Mapping[str, object], what: str) -> Callable[[str], str]:
    def check(name: str) -> str:
        if name not in known:
            raise unknown(what, name, known)
        return name

    return check


def _known_strategy(name: str) -> str:
    # Looked up late: strategies are found in their folders, which takes a while.
    return _one_of(dict.fromkeys(strategy_names()), "strategy")(name)


def _offer_strategies(schema: JsonDict) -> None:
    schema["enum"] = list(strategy_names())


def in_words(choices: Iterable[str]) -> str:
    """Choices as an error of Pydantic lists them: 'a', 'b' or 'c'."""
    *others, last = (f"'{choice}'" for choice in choices)
    return f"{', '.join(others)} or {last}" if others else last


class _FirstFault(FailFast):
    __hash__ = object.__hash__  # Pydantic's class has no hash, and so fits into no `| None`


OpName = Annotated[str, AfterValidator(_one_of(OPS, "op")), Field(json_schema_extra={"enum": list(OPS)})]
DTypeName = Annotated[str, AfterValidator(_one_of(DTYPES, "dtype")), Field(json_schema_extra={"enum": list(DTYPES)})]
FloatName = Literal["float16", "bfloat16", "float32", "float64"]
StrategyName = Annotated[str, AfterValidator(_known_strategy), Field(json_schema_extra=_offer_strategies)]
DistributionName = Annotated[
    str,
    AfterValidator(_one_of(DISTRIBUTIONS, "distribution")),
    Field(json_schema_extra={"enum": list(DISTRIBUTIONS)}),
]
Listed = Annotated[tuple[T, ...], _FirstFault()]
"""A list that is checked up to its first fault: an answer that named a million faults would take the api a minute."""
BackendName = Literal["auto", "cpu", "cuda"]
ReduceBackendName = Literal["auto", "cpu", "cuda", "gang", "dask"]
Priority = Literal["low", "normal", "high"]
FiniteFloat = Annotated[StrictFloat, Field(allow_inf_nan=False)]
Parameter = Annotated[StrictInt | FiniteFloat, said_as("Should be a finite number")]
Number = Annotated[
    StrictBool | StrictInt | FiniteFloat | Annotated[str, StringConstraints(max_length=64)],
    said_as('Should be a finite number, or a string such as "0x1.8p+1", "nan", "inf", "-inf"'),
]
TagName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_.-]{1,64}$")]
TagValue = Annotated[str, StringConstraints(max_length=256, pattern=r"^[^\x00]*$")]
Tags = Annotated[dict[TagName, TagValue], Field(max_length=MAX_TAGS)]
JobName = Annotated[str, StringConstraints(max_length=128, strip_whitespace=True, pattern=r"^[^\x00-\x1f]*$")]
JobNote = Annotated[str, StringConstraints(max_length=4000, strip_whitespace=True, pattern=r"^[^\x00]*$")]


class JobOptions(Frozen):
    """The options that every kind of job has."""

    timeout_s: float = Field(
        300.0,
        strict=True,
        gt=0,
        le=MAX_TIMEOUT_S,
        description="How long the job may run, in seconds; the time in the queue does not count.",
    )
    priority: Priority = Field(
        "normal",
        description="Priority in the queue. Waiting raises it, and the owner's quota limits how many jobs "
        "wait as high.",
    )
    tags: Tags = Field(
        default_factory=dict,
        description="Tags of the job, by name. Lists of jobs can be filtered by them.",
    )
    webhook: Webhook | None = Field(
        None,
        description="A receiver that gets one message when the job has ended. The spec does not show it; "
        "/v1/jobs/{id}/deliveries does.",
    )
