"""What reports are made of besides a job's own facts: tables, charts, published figures beside measured ones."""

import re
from datetime import datetime
from enum import StrEnum
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field

from warpfold.app.charts.chart import Chart
from warpfold.app.reports.words import ABSENT
from warpfold.contract.provenance import DeviceView, Provenance
from warpfold.contract.states import Status


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True)


_NUMBER = re.compile(r"-?[\d,]*\.?\d+(e[+-]?\d+)?( ?[%×B]| – \d.*| of \d+)?|-?inf|nan")


class Table(_Part):
    """Text in rows and columns."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str | None = None

    def is_numeric(self, column: int) -> bool:
        """Whether the column holds numbers and nothing else: these stand at its right."""
        cells = {row[column] for row in self.rows} - {ABSENT, ""}
        return bool(self.columns and cells) and all(map(_NUMBER.fullmatch, cells))


class Verdict(StrEnum):
    """How a published figure and ours stand to each other."""

    AGREES = "agrees"  # the same value, or the same within what the document's digits and other data allow
    OTHER_MACHINE = "other machine"  # a time or a speed: nothing to agree with, only to set in proportion
    OTHER_DATA = "other data"  # the document's random numbers are not known: only the size of the error compares
    CORRECTED = "corrected"  # the document's figure is not right, and why is known
    DIFFERS = "differs"
    NEW = "new"  # the document has no such figure
    MISSING = "not measured"


class Compared(_Part):
    """One published figure beside the measured one."""

    case: str = Field(description="which row of the document: the size, the test")
    quantity: str
    unit: str
    published: str
    measured: str | None
    machine: str | None = Field(description="where it was measured")
    verdict: Verdict
    why: str | None = Field(description="what to make of it")


class Finding(_Part):
    """What a study shows, in a sentence or two."""

    verdict: Verdict
    text: str


class ChartView(_Part):
    """A chart: Vega-Lite as JSON text, with its words."""

    name: str
    title: str
    description: str
    spec: str

    @classmethod
    def of(cls, chart: Chart) -> "ChartView":
        return cls(name=chart.name, title=chart.title, description=chart.description, spec=chart.spec)

    def chart(self) -> Chart:
        """As `app.charts` draws it."""
        return Chart(self.name, self.title, self.description, self.spec)


class PartJob(_Part):
    """A job of a preset."""

    job_id: UUID | None = Field(description="null for a job that was left out")
    name: str
    kind: str
    status: Status | None
    why: str | None = Field(description="why it failed, or was left out")
    machine: str | None
    total_ms: float | None
    ended_at: datetime | None
    device: DeviceView | None
    provenance: Provenance | None
    tables: tuple[Table, ...]


class Part(_Part):
    """A preset: what it is, what the document says beside what was measured, what that shows, and its jobs."""

    preset: str
    title: str
    description: str
    source: str = Field(description="the document")
    published_on: str | None = Field(description="the machine that the document's figures are of, where it says so")
    changes: str | None = Field(description="how this run differs from the preset; null if it does not")
    compared: tuple[Compared, ...]
    findings: tuple[Finding, ...]
    charts: tuple[ChartView, ...]
    jobs: tuple[PartJob, ...]
