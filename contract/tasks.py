"""What a worker can be asked to do: every kind of job but presets, which become several of these."""

from typing import Annotated, Literal

from pydantic import Field, TypeAdapter

from warpfold.contract.kinds.accuracy import AccuracySpec, ThreeNumbersSpec
from warpfold.contract.kinds.benchmark import BenchmarkSpec
from warpfold.contract.kinds.cluster import ClusterSpec
from warpfold.contract.kinds.profile import ProfileSpec
from warpfold.contract.kinds.reduce import ReduceSpec
from warpfold.contract.kinds.scaling import ScalingSpec
from warpfold.contract.needs import ANY, GANG, GANG_FIRST, GPU_FIRST

TaskSpec = Annotated[
    ReduceSpec | BenchmarkSpec | ClusterSpec | AccuracySpec | ThreeNumbersSpec | ScalingSpec | ProfileSpec,
    Field(discriminator="kind"),
]
"""The union of these kinds."""

TaskKind = Literal["reduce", "benchmark", "cluster", "accuracy", "three_numbers", "scaling", "profile"]

task_spec: TypeAdapter[TaskSpec] = TypeAdapter(TaskSpec)


def needs(spec: TaskSpec) -> str:
    """Which slots can run the job, as `contract.needs` puts it."""
    if isinstance(spec, ScalingSpec) and spec.backend == "cuda":
        return GANG
    if spec.backend != "auto":
        return spec.backend
    match spec:
        case ScalingSpec():
            wanted = GANG_FIRST
        case ProfileSpec():
            wanted = GPU_FIRST
        case AccuracySpec():
            wanted = GPU_FIRST if spec.wants_gpu() else ANY
        case ClusterSpec() | ThreeNumbersSpec():
            wanted = ANY  # the CPU has a model of clusters, and adds three numbers as a GPU does
        case BenchmarkSpec() | ReduceSpec():
            able = spec.backends()
            wanted = able[0] if len(able) == 1 else ANY
    return wanted
