"""The content of a job's report: the expected value beside the measured one, tables, charts and provenance, and for
a preset the published figures beside the measured ones."""

import re
from datetime import datetime
from enum import StrEnum
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field

from warpfold.app.charts.chart import Chart
from warpfold.contract.jobs import JobResult
from warpfold.contract.json_value import ComplexHex, JsonComplex, JsonValue
from warpfold.contract.provenance import DeviceView, Provenance
from warpfold.contract.states import Status
from warpfold.contract.wording import ABSENT

_NUMBER = re.compile(r"-?[\d,]*\.?\d+(e[+-]?\d+)?( ?[%×B]| – \d.*| of \d+)?|-?inf|nan")


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True)


class Table(_Frozen):
    """A table of texts."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str | None = None

    def is_numeric(self, column: int) -> bool:
        """Whether the column holds numbers and nothing else, which are then aligned at their right."""
        cells = {row[column] for row in self.rows} - {ABSENT, ""}
        return bool(self.columns and cells) and all(map(_NUMBER.fullmatch, cells))


class Verdict(StrEnum):
    """How a published figure and the measured figure compare."""

    AGREES = "agrees"  # the same value, or the same within what the document's digits and other data allow
    OTHER_MACHINE = "other machine"  # a time or a speed: nothing to agree with, only to set in proportion
    OTHER_DATA = "other data"  # the document's random numbers are not known: only the size of the error compares
    CORRECTED = "corrected"  # the document's figure is not right, and why is known
    DIFFERS = "differs"
    NEW = "new"  # the document has no such figure
    MISSING = "not measured"


class Compared(_Frozen):
    """A published figure beside the measured figure."""

    case: str = Field(description="Row of the document: the size, or the test.")
    quantity: str
    unit: str
    published: str
    measured: str | None
    machine: str | None = Field(description="Machine of the measurement; null if it is not known.")
    verdict: Verdict
    why: str | None = Field(description="What the difference means; null without a difference to explain.")


class Finding(_Frozen):
    """A finding of a study, in a sentence or two."""

    verdict: Verdict
    text: str


class ChartView(_Frozen):
    """A chart as Vega-Lite in JSON text, with its title and description."""

    name: str
    title: str
    description: str
    spec: str

    @classmethod
    def of(cls, chart: Chart) -> "ChartView":
        return cls(name=chart.name, title=chart.title, description=chart.description, spec=chart.spec)

    def chart(self) -> Chart:
        """The chart in the form that `app.charts` draws."""
        return Chart(self.name, self.title, self.description, self.spec)


class PartJob(_Frozen):
    """A job of a preset."""

    job_id: UUID | None = Field(description="Id of the job. Null for a job that was left out.")
    name: str
    kind: str
    status: Status | None
    why: str | None = Field(description="Why the job failed or was left out; null if it did neither.")
    machine: str | None
    total_ms: float | None
    ended_at: datetime | None
    device: DeviceView | None
    provenance: Provenance | None
    tables: tuple[Table, ...]


class Part(_Frozen):
    """The section of a preset: the published figures beside the measured ones, what these show, and the jobs.

    The OpenAPI document knows it as a part of a report.
    """

    preset: str
    title: str
    description: str
    source: str = Field(description="Title of the document.")
    published_on: str | None = Field(
        description="Machine on which the document's figures were measured; null if the document does not say."
    )
    changes: str | None = Field(description="How this run differs from the preset; null if it does not differ.")
    compared: tuple[Compared, ...]
    findings: tuple[Finding, ...]
    charts: tuple[ChartView, ...]
    jobs: tuple[PartJob, ...]


class Comparison(BaseModel):
    """The expected value beside the measured value."""

    expected: JsonValue | None = Field(description="Expected value. Null if it is not known.")
    expected_hex: str | None
    basis: str = Field(description="How the expected value was found, or why it is not known.")
    measured: JsonValue | JsonComplex | None = Field(
        description="Measured value. Null where a null among the elements propagates."
    )
    measured_hex: str | ComplexHex | None
    agrees: bool | None = Field(
        description="Whether the two values are the same, bit for bit. Null if no value is expected."
    )
    relative_error: float | None = Field(
        description="|measured − expected| ÷ |expected|. Null if that is not a number."
    )


class Report(BaseModel):
    """The report of a finished job, for people and for archives."""

    job_id: UUID
    kind: str
    status: Status
    owner: str
    tags: dict[str, str]
    asked: str = Field(description="What the job should do, in words.")
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    reason: str | None
    error: str | None
    comparison: Comparison | None = Field(
        description="Expected value beside the measured value. Null for a job without a value to compare."
    )
    result: JobResult | None
    tables: tuple[Table, ...] = Field((), description="Tables of a result with many points.")
    charts: tuple[ChartView, ...] = Field((), description="Charts as Vega-Lite.")
    parts: tuple[Part, ...] = Field(
        (), description="For a preset: the published figures beside the measured figures, by study."
    )
