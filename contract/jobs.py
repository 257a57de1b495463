"""What a job is asked to do. One definition serves as request body, stored column, worker argument and OpenAPI."""

from typing import Annotated, Literal, get_args

from pydantic import Field, TypeAdapter

from warpfold.contract.kinds.preset import PresetSpec
from warpfold.contract.tasks import TaskKind, TaskSpec

JobSpec = Annotated[TaskSpec | PresetSpec, Field(discriminator="kind")]
"""The union of all kinds."""

Kind = Literal[TaskKind, "preset"]
KINDS: tuple[Kind, ...] = get_args(Kind)
"""The values of `kind`, which is the first part of the location of an error in a spec."""

job_spec: TypeAdapter[JobSpec] = TypeAdapter(JobSpec)
