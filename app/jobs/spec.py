"""What a job is asked to do. One definition serves as request body, stored column, worker argument and OpenAPI."""

from typing import Annotated

from pydantic import Field, TypeAdapter

from app.jobs.preset_spec import PresetSpec
from app.jobs.task_spec import TASK_KINDS, TaskSpec

JobSpec = Annotated[TaskSpec | PresetSpec, Field(discriminator="kind")]
"""The union of all kinds."""

KINDS = (*TASK_KINDS, "preset")
"""The values of `kind`, which is the first part of the location of an error in a spec."""

job_spec: TypeAdapter[JobSpec] = TypeAdapter(JobSpec)
