"""What a worker can be asked to do: every kind of job but presets, which become several of these.

A kind of job is a file of `contract/kinds/`. Its spec is added to the union here, its result in `contract/jobs.py`.
"""

from typing import Annotated, Literal

from pydantic import Field, TypeAdapter

from warpfold.contract.kinds.accuracy import AccuracySpec
from warpfold.contract.kinds.benchmark import BenchmarkSpec
from warpfold.contract.kinds.cluster import ClusterSpec
from warpfold.contract.kinds.profile import ProfileSpec
from warpfold.contract.kinds.reduce import ReduceSpec
from warpfold.contract.kinds.scaling import ScalingSpec
from warpfold.contract.kinds.three_numbers import ThreeNumbersSpec

TaskKind = Literal["reduce", "benchmark", "cluster", "accuracy", "three_numbers", "scaling", "profile"]

TaskSpec = Annotated[
    ReduceSpec | BenchmarkSpec | ClusterSpec | AccuracySpec | ThreeNumbersSpec | ScalingSpec | ProfileSpec,
    Field(discriminator="kind"),
]
"""The specs of these kinds."""

task_spec: TypeAdapter[TaskSpec] = TypeAdapter(TaskSpec)
