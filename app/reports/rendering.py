"""Reports as HTML and Markdown. Everything that a user wrote is escaped."""

import re
from collections import Counter
from collections.abc import Mapping
from functools import cache

from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape

from warpfold.app.charts.chart import Chart
from warpfold.app.json_view import json_view_of
from warpfold.app.reports.report import Part, Report, Table, Verdict
from warpfold.contract.wording import ABSENT, milliseconds, number_of

_MARKDOWN = re.compile(r"([\\`*_{}\[\]<>#|~&])")


def charts_of(report: Report) -> dict[str, Chart]:
    """All charts of a report by names that are unique in it."""
    own = {chart.name: chart.chart() for chart in report.charts}
    parts = {f"{prefix(report, part)}{chart.name}": chart.chart() for part in report.parts for chart in part.charts}
    return own | parts


def prefix(report: Report, part: Part) -> str:
    """The prefix of the names of a section's charts: its preset's name, unless there is only one section."""
    return f"{part.preset}-" if len(report.parts) > 1 else ""


def html(report: Report, drawn: Mapping[str, str]) -> str:
    """A page of its own, without script or anything from elsewhere. `drawn` are the charts as SVG elements, by name."""
    page = _templates().get_template("report.html.jinja")
    return page.render(report=report, title=title(report), properties=_properties(report), drawn=drawn)


def markdown(report: Report, pictures: Mapping[str, str]) -> str:
    """The same in Markdown (GitHub's tables). `pictures` are the addresses of the charts' pictures, by name."""
    page = _templates().get_template("report.md.jinja")
    text = page.render(report=report, title=title(report), properties=_properties(report), pictures=pictures)
    return re.sub(r"\n{3,}", "\n\n", text)


@cache
def _templates() -> Environment:
    templates = Environment(
        loader=PackageLoader("warpfold.app"),
        autoescape=select_autoescape(("html.jinja",)),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    templates.filters |= {
        "md": _escape_markdown,
        "balance": balance,
        "comparisons": _comparisons,
        "jobs": _jobs,
        "provenance": _provenance,
        "prefix": lambda part, report: prefix(report, part),
        "untitled": lambda table: table.model_copy(update={"title": ""}),
    }
    return templates


def _escape_markdown(text: object) -> str:
    return _MARKDOWN.sub(r"\\\1", " ".join(str(text).split()))


def title(report: Report) -> str:
    return report.parts[0].title if len(report.parts) == 1 else report.asked


def balance(part: Part) -> str:
    """How many of the published figures agree, and why the others do not."""
    counts = Counter(row.verdict for row in part.compared)
    several = {Verdict.AGREES: "agree", Verdict.DIFFERS: "differ"}
    counted = ", ".join(
        f"{counts[verdict]} {verdict.value if counts[verdict] == 1 else several.get(verdict, verdict.value)}"
        for verdict in Verdict
        if counts[verdict]
    )
    return f"{number_of('published figure', len(part.compared))}: {counted}."


def _comparisons(part: Part) -> list[Table]:
    """One table of all published figures beside ours."""
    machines = sorted({row.machine for row in part.compared if row.machine is not None})
    rows = tuple(
        (
            row.case,
            f"{row.quantity} [{row.unit}]" if row.unit else row.quantity,
            row.published,
            row.measured or ABSENT,
            row.verdict.value,
            row.why or "",
        )
        for row in part.compared
    )
    columns = ("case", "quantity", "published", "measured", "verdict", "what to make of it")
    note = f"Measured on {'; '.join(machines)}." if machines else None
    return [Table(title="Published and measured", columns=columns, rows=rows, note=note)] if rows else []


def _provenance(part: Part) -> list[Table]:
    """Where and by what it was measured, each machine and version once."""
    rows: dict[tuple[str, ...], None] = {}
    for job in part.jobs:
        if job.device is not None and job.provenance is not None and job.ended_at is not None:
            memory = f"{job.device.memory_bytes / 2**30:.0f} GiB, {job.device.cores} cores"
            versions = {"warpfold": job.provenance.warpfold, "python": job.provenance.python, **job.device.versions}
            versions_text = ", ".join(f"{name} {version}" for name, version in versions.items())
            commit = (job.provenance.commit or "not known")[:12]
            rows[job.device.name, memory, versions_text, commit, f"{job.ended_at:%Y-%m-%d}"] = None
    columns = ("machine", "has", "versions", "commit", "measured")
    return [Table(title="Provenance", columns=columns, rows=tuple(rows))] if rows else []


def _jobs(part: Part) -> Table:
    rows = tuple(
        (
            job.name,
            job.kind or ABSENT,
            "left out" if job.status is None else job.status.value,
            job.machine or ABSENT,
            milliseconds(job.total_ms),
            job.why or "",
        )
        for job in part.jobs
    )
    return Table(title="Jobs", columns=("job", "kind", "status", "machine", "ms", "why"), rows=rows)


def _properties(report: Report) -> list[Table]:
    """The properties of a job that every report shows, as names and values."""
    tables = []
    compared = report.comparison
    if compared is not None:
        rows = [
            ("expected", _shown(compared.expected, compared.expected_hex)),
            (
                "measured",
                _shown(compared.measured, None if compared.measured_hex is None else str(compared.measured_hex)),
            ),
            ("agree, bit for bit", {True: "yes", False: "no", None: "not known"}[compared.agrees]),
            ("relative error", _shown(compared.relative_error)),
            ("how expected", compared.basis),
        ]
        tables.append(_pairs("Expected and measured", rows))
    if report.result is not None:
        # Its parts (timings, device, provenance) become tables of their own; the rest is the first.
        result = report.result.model_dump(mode="json")
        parts = {name: part for name, part in result.items() if isinstance(part, dict)}
        sections = {"Result": {name: value for name, value in result.items() if name not in parts}}
        sections |= {name.capitalize(): part for name, part in parts.items()}
        tables += [_pairs(title, json_view_of(title, part).rows) for title, part in sections.items()]
    moments = {"submitted": report.created_at, "started": report.started_at, "ended": report.finished_at}
    rows = [(name, moment.isoformat(" ", "milliseconds")) for name, moment in moments.items() if moment is not None]
    return [*tables, _pairs("Job", [*rows, *((f"tag {name}", value) for name, value in sorted(report.tags.items()))])]


def _pairs(title: str, rows: list[tuple[str, str]]) -> Table:
    return Table(title=title, columns=(), rows=tuple(rows))


def _shown(value: object, hexadecimal: str | None = None) -> str:
    if value is None:
        return "not known"
    return f"{value!r}" if hexadecimal is None else f"{value!r} = {hexadecimal}"
