"""Reports as HTML and Markdown. Everything that a user wrote is escaped."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape

from app.reports.report import Report

_MARKDOWN = re.compile(r"([\\`*_{}\[\]<>#|~&])")


@dataclass(frozen=True, slots=True)
class TextTable:
    """A titled table of names and values, as text."""

    title: str
    rows: Sequence[tuple[str, str]]


def html(report: Report) -> str:
    """A page of its own, without script or anything from elsewhere."""
    return _templates().get_template("report.html.jinja").render(report=report, tables=_tables(report))


def markdown(report: Report) -> str:
    """The same in Markdown (GitHub's tables)."""
    return _templates().get_template("report.md.jinja").render(report=report, tables=_tables(report))


@cache
def _templates() -> Environment:
    templates = Environment(
        loader=PackageLoader("app"),
        autoescape=select_autoescape(("html.jinja",)),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    templates.filters["md"] = _escape_markdown
    return templates


def _escape_markdown(text: object) -> str:
    return _MARKDOWN.sub(r"\\\1", " ".join(str(text).split()))


def _tables(report: Report) -> list[TextTable]:
    tables = []
    compared, result = report.comparison, report.result
    if compared is not None:
        rows = [
            ("expected", _shown(compared.expected, compared.expected_hex)),
            ("measured", _shown(compared.measured, compared.measured_hex)),
            ("agree, bit for bit", {True: "yes", False: "no", None: "not known"}[compared.agrees]),
            ("relative error", _shown(compared.relative_error)),
            ("how expected", compared.basis),
        ]
        tables.append(TextTable("Expected and measured", rows))
    if result is not None:
        seconds = result.timings
        tables.append(
            TextTable(
                "Result",
                [
                    ("value", _shown(result.value, result.hex)),
                    ("dtype", result.dtype),
                    ("elements", f"{result.count:,}"),
                    ("strategy", f"{result.strategy} on {result.backend}"),
                    ("correctly rounded", "yes" if result.correctly_rounded else "no"),
                    ("device", f"{result.device.name} ({result.device.cores} cores)"),
                ],
            )
        )
        tables.append(
            TextTable(
                "Timings",
                [
                    ("in the queue", f"{seconds.queued_ms:.3f} ms"),
                    ("loading", f"{seconds.load_ms:.3f} ms"),
                    ("reduction", f"{seconds.kernel_ms:.3f} ms"),
                    ("start to result", f"{seconds.total_ms:.3f} ms"),
                ],
            )
        )
        origin = result.provenance
        tables.append(
            TextTable(
                "Provenance",
                [
                    ("warpfold", f"{origin.warpfold} ({origin.commit or 'no commit known'})"),
                    ("python", origin.python),
                    *((name, version) for name, version in sorted(origin.libraries.items())),
                    ("worker", f"{origin.worker} on {origin.host}, attempt {origin.attempt}"),
                    ("spec (SHA-256)", origin.spec_sha256),
                    ("seed", "none" if origin.seed is None else str(origin.seed)),
                ],
            )
        )
    moments = {"submitted": report.created_at, "started": report.started_at, "ended": report.finished_at}
    rows = [(name, moment.isoformat(" ", "milliseconds")) for name, moment in moments.items() if moment is not None]
    tables.append(TextTable("Job", [*rows, *((f"tag {name}", value) for name, value in sorted(report.tags.items()))]))
    return tables


def _shown(value: object, hexadecimal: str | None = None) -> str:
    if value is None:
        return "not known"
    return f"{value!r}" if hexadecimal is None else f"{value!r} = {hexadecimal}"
