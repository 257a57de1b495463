"""The tasks that a worker runs: every kind of job but presets, which become several tasks.

A kind of job is a file of `contract/kinds/`. Here its spec and its result are added to the unions.
"""

from typing import Annotated, Literal

from pydantic import Field, TypeAdapter

from warpfold.contract.kinds.accuracy import AccuracyResult, AccuracySpec
from warpfold.contract.kinds.benchmark import BenchmarkResult, BenchmarkSpec
from warpfold.contract.kinds.cluster import ClusterResult, ClusterSpec
from warpfold.contract.kinds.groupby import GroupbyResult, GroupbySpec
from warpfold.contract.kinds.merge import MergeResult, MergeSpec
from warpfold.contract.kinds.profile import ProfileResult, ProfileSpec
from warpfold.contract.kinds.reduce import ReduceArrayResult, ReduceResult, ReduceSpec
from warpfold.contract.kinds.scaling import ScalingResult, ScalingSpec
from warpfold.contract.kinds.three_numbers import ThreeNumbersResult, ThreeNumbersSpec
from warpfold.contract.sources.values import AS_STORED

TaskKind = Literal[
    "reduce", "benchmark", "cluster", "accuracy", "three_numbers", "scaling", "profile", "groupby", "merge"
]

TaskSpec = Annotated[
    ReduceSpec
    | BenchmarkSpec
    | ClusterSpec
    | AccuracySpec
    | ThreeNumbersSpec
    | ScalingSpec
    | ProfileSpec
    | GroupbySpec
    | MergeSpec,
    Field(discriminator="kind"),
]
"""The specs of these kinds."""

FirstResult = ReduceResult | ReduceArrayResult | BenchmarkResult | ClusterResult | ScalingResult | ProfileResult
LaterResult = AccuracyResult | ThreeNumbersResult | GroupbyResult | MergeResult
"""The results of these kinds: the API's document lists that of presets between the first and the later ones."""

task_spec: TypeAdapter[TaskSpec] = TypeAdapter(TaskSpec)


def stored_task(text: str) -> TaskSpec:
    """The spec that was stored as the JSON `text`. Values that were checked at its acceptance are not checked again.

    Raises ValidationError for a spec that this version cannot read."""
    return task_spec.validate_json(text, context=AS_STORED)
