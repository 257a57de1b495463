"""What a worker can be asked to do: every kind of job but presets, which become several of these."""

from typing import Annotated

from pydantic import Field, TypeAdapter

from app.jobs.benchmark_spec import BenchmarkSpec
from app.jobs.cluster_spec import ClusterSpec
from app.jobs.reduce_spec import ReduceSpec

TaskSpec = Annotated[ReduceSpec | BenchmarkSpec | ClusterSpec, Field(discriminator="kind")]
"""The union of these kinds."""

TASK_KINDS = ("reduce", "benchmark", "cluster")
"""The values of their `kind`."""

task_spec: TypeAdapter[TaskSpec] = TypeAdapter(TaskSpec)


def needs(spec: TaskSpec) -> str:
    """Which slots can run the job: "cpu", "cuda" or "any"."""
    if spec.backend != "auto":
        return spec.backend
    match spec:
        case ClusterSpec():
            return "any"  # the CPU has a model
        case BenchmarkSpec() | ReduceSpec():
            able = spec.backends()
    return able[0] if len(able) == 1 else "any"
