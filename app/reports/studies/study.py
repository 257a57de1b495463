"""A preset that was run, and the comparison of its results with its document."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from warpfold.app.charts.chart import Chart
from warpfold.app.reports.finished import Finished
from warpfold.app.reports.report import Compared, Finding, Verdict
from warpfold.contract.jobs import JobResult
from warpfold.contract.provenance import DeviceView
from warpfold.contract.states import Reason

R = TypeVar("R", bound=JobResult)


@dataclass(frozen=True, slots=True)
class Study:
    """The jobs of one preset, by the names that the preset gives them, and why others were left out."""

    jobs: Mapping[str, Finished]
    left_out: Mapping[str, str]

    def result(self, name: str, kind: type[R]) -> R | None:
        """The result of a job; None if the job was left out, failed, or is of another kind than the preset's own."""
        job = self.jobs.get(name)
        return job.result if job is not None and isinstance(job.result, kind) else None

    def device(self, name: str) -> DeviceView | None:
        """Where a job ran."""
        job = self.jobs.get(name)
        return None if job is None else job.device

    def why_missing(self, name: str) -> str:
        """Why a job has no result."""
        job = self.jobs.get(name)
        if job is None:
            return f"left out: {self.left_out[name]}" if name in self.left_out else f"{name} was not run"
        if job.result is not None:
            return f"not among the points of {name}"
        became = "was skipped" if job.job.reason == Reason.UNAVAILABLE else job.job.status.value
        return f"{name} {became}" + (f": {job.job.error}" if job.job.error else "")


@dataclass(frozen=True, slots=True)
class Published:
    """A figure of the document, as it stands there."""

    case: str
    quantity: str
    unit: str
    text: str

    def missing(self, why: str) -> Compared:
        """The comparison of a figure that has no counterpart."""
        return self.beside(None, None, Verdict.MISSING, why)

    def beside(self, measured: str | None, machine: str | None, verdict: Verdict, why: str | None = None) -> Compared:
        """The comparison with a measured figure."""
        return Compared(
            case=self.case,
            quantity=self.quantity,
            unit=self.unit,
            published=self.text,
            measured=measured,
            machine=machine,
            verdict=verdict,
            why=why,
        )


@dataclass(frozen=True, slots=True)
class StudyOutcome:
    """Every published figure beside ours, the findings, and charts."""

    compared: tuple[Compared, ...]
    findings: tuple[Finding, ...] = ()
    charts: tuple[Chart, ...] = ()


Compare = Callable[[Study], StudyOutcome]
"""Compares a run with its document."""


def machine(device: DeviceView | None) -> str | None:
    """The name of the device that measured; None where nothing was measured."""
    return None if device is None else device.name
