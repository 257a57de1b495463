"""The report of one job: expected against measured, tables, charts, provenance; of a preset, what its document says."""

from datetime import datetime
from uuid import UUID

from pydantic import BaseModel, Field

from warpfold.app.reports.parts import ChartView, Part, Table
from warpfold.contract.jobs import JobResult
from warpfold.contract.json_value import JsonValue
from warpfold.contract.states import Status


class Comparison(BaseModel):
    """Expected against measured."""

    expected: JsonValue | None = Field(description="null where it is not known here")
    expected_hex: str | None
    basis: str = Field(description="how the expected value was found, or why it is not known")
    measured: JsonValue
    measured_hex: str | None
    agrees: bool | None = Field(description="the same value, bit for bit; null where nothing is expected")
    relative_error: float | None = Field(description="|measured − expected| ÷ |expected|, where that is a number")


class Report(BaseModel):
    """A finished job, for people and for archives."""

    job_id: UUID
    kind: str
    status: Status
    owner: str
    tags: dict[str, str]
    asked: str = Field(description="what the job was to do, in words")
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    reason: str | None
    error: str | None
    comparison: Comparison | None = Field(description="null for a job without a value to compare")
    result: JobResult | None
    tables: tuple[Table, ...] = Field((), description="of a result with many points")
    charts: tuple[ChartView, ...] = Field((), description="as Vega-Lite")
    parts: tuple[Part, ...] = Field((), description="of a preset: published figures beside measured ones, by study")
