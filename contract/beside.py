"""Sources beside the elements of a reduction: the second array of an op of two, weights, and the
times and keys of windows."""

from typing import Annotated

from pydantic import Field

from warpfold.contract.sources import Source
from warpfold.contract.sources.source import SourceSpec
from warpfold.contract.windows import WindowSpec
from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.ops import Op
from warpfold.kernels.ops.weights import WITH_WEIGHTS, Weighting, weighted
from warpfold.kernels.strategy import AUTO, EXACT

OtherField = Annotated[
    Source | None,
    Field(
        description="The second array of an op of two, such as `dot` and `corr`, as long as `source`. Either both are "
        "floats, whose dtypes may differ, or neither is."
    ),
]

WeightsField = Annotated[
    Source | None,
    Field(
        exclude_if=lambda weights: weights is None,
        description="The weights of the elements, one for each: numbers of any sign. "
        f"{', '.join(WITH_WEIGHTS)} take them. A job fails where it would divide by weights that add up to 0.",
    ),
]

WeightingField = Annotated[
    Weighting,
    Field(
        exclude_if=lambda weighting: weighting is Weighting.FREQUENCY,
        description="What the weights say: `frequency`, how often each element is there, or `reliability`, how much it "
        "is worth. The values differ where `ddof` is not 0: they are divided by Σ w − ddof, or by "
        "Σ w − ddof Σ w² / Σ w.",
    ),
]


OverField = Annotated[
    Source | None,
    Field(
        exclude_if=lambda over: over is None,
        description="The times of the elements, one for each, for a window of some `width`: instants, durations or "
        "integers, each no less than the one before it within a line or a group of equal `keys`.",
    ),
]
KeysField = Annotated[
    Source | None,
    Field(
        exclude_if=lambda keys: keys is None,
        description="Integers or truth values, one for each element: a window has only elements with the key of its "
        "own one.",
    ),
]


def as_beside(source: SourceSpec, other: SourceSpec | None, field: str) -> SourceSpec:
    """`source`, the one of `field`, beside another: integers that were written without a dtype are float64 beside
    floats. Raises InvalidInput."""
    dtype = None if other is None else other.known_dtype
    if dtype is None or not dtype.is_float:
        return source
    try:
        return source.beside_floats()
    except InvalidInput as error:
        raise InvalidInput(str(error), (error.field or "").replace("source", field, 1)) from None


def check_weights(op: Op, source: SourceSpec, weights: SourceSpec | None, weighting: Weighting) -> None:
    """Raise InvalidInput naming "weights" or "weighting" unless `op` takes weights and each element has a weight."""
    if weights is None:
        if weighting is not Weighting.FREQUENCY:
            raise InvalidInput("there are no weights", "weighting")
        return
    weighted(op, weighting)
    count, number = source.known_count, weights.known_count
    if count is not None and number is not None and count != number:
        raise InvalidInput(f"there are {number:,} weights for {count:,} elements", "weights")


def check_beside(*, strategy: str, of_dask: bool, states: bool) -> None:
    """Raise InvalidInput naming the field that does not go with weights."""
    if strategy not in (AUTO, EXACT):
        raise InvalidInput(f"strategy {strategy!r} takes no weights; give exact or auto", "strategy")
    if of_dask:
        raise InvalidInput("partitions have no weights so far; give the backend cpu, cuda or auto", "weights")
    if states:
        raise InvalidInput("values with weights have no exact states so far", "states")


def check_beside_window(window: WindowSpec | None, over: object, keys: object, lines: object) -> None:
    """Raise InvalidInput naming "over" or "keys" unless a window takes times and keys beside its elements."""
    if (over is not None) != (window is not None and window.width is not None):
        raise InvalidInput("a window of some width needs the times of the elements, and no other does", "over")
    if keys is not None and (window is None or lines is not None):
        raise InvalidInput("keys are for windows without an axis and segments", "keys")
