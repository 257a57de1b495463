"""The result of a preset, as stored and as served: which jobs it consisted of. Each has its own result."""

from uuid import UUID

from pydantic import Field

from warpfold.contract.frozen import Frozen


class ChildOutcome(Frozen):
    """A job of the preset, which succeeded."""

    job_id: UUID
    name: str = Field(description="what the preset calls it")
    kind: str


class SkippedChild(Frozen):
    """A job of the preset that nothing here can run."""

    job_id: UUID
    name: str
    kind: str
    why: str = Field(description="no slot of the service has what it needs, or what it found there is too little")


class PresetResult(Frozen):
    """All jobs of the preset that can run here succeeded. `/v1/reports/{id}` puts their figures beside the published
    ones."""

    jobs: tuple[ChildOutcome, ...]
    skipped: tuple[SkippedChild, ...] = ()
    queued_ms: float = Field(description="from acceptance to the start of the first job")
    total_ms: float = Field(description="from there to the end of the last")
