"""HTTP of measurements."""

from datetime import datetime
from typing import Annotated, Literal
from uuid import UUID

from fastapi import APIRouter, Query
from pydantic import BaseModel, ConfigDict, Field

from app.auth.bearer import User
from app.context import Using
from app.cursors import cursor_of, key_of
from app.errors import Invalid
from app.openapi import answers
from app.results import repository
from app.results.repository import Measured, MeasurementFilter

_LISTING = "results"
_LARGEST = (1 << 63) - 1

Name = Annotated[str, Query(max_length=128, pattern=r"^[^\x00]*$")]
Count = Annotated[int, Query(ge=0, le=_LARGEST)]


class MeasurementView(BaseModel):
    """One measured point."""

    model_config = ConfigDict(from_attributes=True)

    id: int
    job_id: UUID
    kind: str
    op: str
    dtype: str
    strategy: str
    backend: str
    device: str
    n: int = Field(description="elements")
    bytes: int = Field(description="read of them")
    samples: int = Field(description="runs that the times stand for")
    load_ms: float
    kernel_ms: float
    gb_per_s: float | None = Field(description="bytes ÷ kernel time, in 10⁹ bytes a second; null for no time")
    correctly_rounded: bool
    created_at: datetime

    @classmethod
    def of(cls, row: Measured) -> "MeasurementView":
        speed = row.bytes / row.kernel_ms / 1e6 if row.kernel_ms > 0 else None
        facts = {name: getattr(row, name) for name in Measured.__dataclass_fields__}
        return cls(**facts, gb_per_s=speed)


class MeasurementPage(BaseModel):
    """Measurements, newest first."""

    items: list[MeasurementView]
    next_cursor: str | None = Field(description="for the next page; null on the last")


router = APIRouter(prefix="/v1/results", tags=["results"])


@router.get("", summary="Measurements across jobs", responses=answers(Invalid))
async def page(
    *,
    user: User,
    context: Using,
    kind: Name | None = None,
    op: Name | None = None,
    dtype: Name | None = None,
    strategy: Name | None = None,
    backend: Name | None = None,
    device: Annotated[Name | None, Query(description="the device's name")] = None,
    job_id: UUID | None = None,
    n_min: Annotated[Count | None, Query(description="fewest elements")] = None,
    n_max: Annotated[Count | None, Query(description="most elements")] = None,
    format: Annotated[Literal["json"], Query(description="of the answer")] = "json",
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
    cursor: Annotated[Name | None, Query(description="next_cursor of the page before")] = None,
) -> MeasurementPage:
    """What was measured, newest first: one row a point, whatever job it came from."""
    chosen = MeasurementFilter(kind, op, dtype, strategy, backend, device, job_id, n_min, n_max)
    found = await context.database.read(repository.page, chosen, limit + 1, key_of(_LISTING, cursor))
    following = cursor_of(_LISTING, found[limit - 1].id) if len(found) > limit else None
    return MeasurementPage(items=[MeasurementView.of(row) for row in found[:limit]], next_cursor=following)
