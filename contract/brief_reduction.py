"""Reductions with many values as lists of jobs show them."""

from typing import Literal

from pydantic import Field

from warpfold.contract.beside import WeightingField
from warpfold.contract.fields import JobOptions, OpName, ReduceBackendName, StrategyName
from warpfold.contract.groupings import AxisField, SegmentsSpec, StatesField
from warpfold.contract.inputs import FingerprintField
from warpfold.contract.op_parameters import DigitsField, OpFields
from warpfold.contract.partitions import PartitionsField
from warpfold.contract.sources import Source
from warpfold.contract.sources.values import BriefValues
from warpfold.contract.windows import WindowField
from warpfold.kernels.ops import NanPolicy
from warpfold.kernels.ops.weights import Weighting


class BriefReduceSpec(JobOptions, OpFields):
    """A `reduce` spec with many values, in brief."""

    kind: Literal["reduce"]
    op: OpName
    strategy: StrategyName
    backend: ReduceBackendName
    nan_policy: NanPolicy
    source: Source | BriefValues
    other: Source | BriefValues | None
    weights: Source | BriefValues | None = Field(None, exclude_if=lambda weights: weights is None)
    weighting: WeightingField = Weighting.FREQUENCY
    ddof: int
    axis: AxisField = Field(None, exclude_if=lambda axis: axis is None)
    keepdims: bool = Field(False, exclude_if=lambda kept: not kept)
    segments: SegmentsSpec | None = Field(None, exclude_if=lambda segments: segments is None)
    window: WindowField = None
    over: Source | BriefValues | None = Field(None, exclude_if=lambda over: over is None)
    keys: Source | BriefValues | None = Field(None, exclude_if=lambda keys: keys is None)
    states: StatesField = False
    fingerprint: FingerprintField = False
    partitions: PartitionsField = None
    digits: DigitsField = None
