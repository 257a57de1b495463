"""Reports as HTML and Markdown. Everything that a user wrote is escaped."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

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
    compared = report.comparison
    if compared is not None:
        rows = [
            ("expected", _shown(compared.expected, compared.expected_hex)),
            ("measured", _shown(compared.measured, compared.measured_hex)),
            ("agree, bit for bit", {True: "yes", False: "no", None: "not known"}[compared.agrees]),
            ("relative error", _shown(compared.relative_error)),
            ("how expected", compared.basis),
        ]
        tables.append(TextTable("Expected and measured", rows))
    if report.result is not None:
        # Its parts (timings, device, provenance) become tables of their own; the rest is the first.
        result = report.result.model_dump(mode="json")
        parts = {name: part for name, part in result.items() if isinstance(part, dict)}
        tables.append(TextTable("Result", _rows({k: v for k, v in result.items() if k not in parts})))
        tables += [TextTable(name.capitalize(), _rows(part)) for name, part in parts.items()]
    moments = {"submitted": report.created_at, "started": report.started_at, "ended": report.finished_at}
    rows = [(name, moment.isoformat(" ", "milliseconds")) for name, moment in moments.items() if moment is not None]
    tables.append(TextTable("Job", [*rows, *((f"tag {name}", value) for name, value in sorted(report.tags.items()))]))
    return tables


def _rows(part: Mapping[str, Any]) -> list[tuple[str, str]]:
    rows: list[tuple[str, str]] = []
    for name, value in part.items():
        if isinstance(value, dict):
            rows += [(f"{_words(name)} {inner}", text) for inner, text in _rows(value)]
        else:
            rows.append((_words(name), _text(name, value)))
    return rows


def _words(name: str) -> str:
    return name.removesuffix("_ms").replace("_", " ")


def _text(name: str, value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return ", ".join(str(one) for one in value)
    if name.endswith("_ms") and isinstance(value, int | float):
        return f"{value:.3f} ms"
    return "none" if value is None else str(value)


def _shown(value: object, hexadecimal: str | None = None) -> str:
    if value is None:
        return "not known"
    return f"{value!r}" if hexadecimal is None else f"{value!r} = {hexadecimal}"
