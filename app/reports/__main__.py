"""`python -m warpfold.app.reports report.json --out DIR`: a report that was saved as JSON, as Markdown with its
pictures.

The machine that measured need not be the one that draws: `GET /v1/reports/{id}` gives the JSON. Several reports get a
`README.md` with a line each.
"""

import argparse
import sys
from collections.abc import Mapping
from pathlib import Path

from warpfold.app.charts import renderer as render
from warpfold.app.reports import rendering
from warpfold.app.reports.report import Report


def write(report: Report, folder: Path, name: str, *, png: bool) -> Path:
    """Write `<name>.md` into `folder`, and a picture a chart into `figures` beside it; returns the Markdown file."""
    figures = folder / "figures"
    figures.mkdir(parents=True, exist_ok=True)
    pictures = {}
    for chart_name, chart in rendering.charts_of(report).items():
        picture = figures / f"{name}-{chart_name}.{'png' if png else 'svg'}"
        if png:
            picture.write_bytes(render.png(chart))
        else:
            picture.write_text(render.svg(chart), encoding="utf-8")
        pictures[chart_name] = f"figures/{picture.name}"
    page = folder / f"{name}.md"
    page.write_text(rendering.markdown(report, pictures), encoding="utf-8")
    return page


def contents(pages: Mapping[str, Report]) -> str:
    """The first page of a folder of reports: what each says in a line, and where it was measured."""
    lines = ["# Reports", "", "| report | what came of it | measured on |", "|---|---|---|"]
    for name, report in pages.items():
        outcome = " ".join(rendering.balance(part) for part in report.parts) or report.status.value
        machines = {job.machine: None for part in report.parts for job in part.jobs if job.machine is not None}
        lines.append(f"| [{rendering.title(report)}]({name}.md) | {outcome} | {', '.join(machines)} |")
    return "\n".join(lines) + "\n"


def main() -> int:
    """Draw every report that the command line names."""
    parser = argparse.ArgumentParser(prog="python -m warpfold.app.reports", description=__doc__)
    parser.add_argument("reports", type=Path, nargs="+", help="JSON files")
    parser.add_argument("--out", type=Path, required=True, help="folder for the Markdown and the pictures")
    parser.add_argument("--png", action="store_true", help="pictures as PNG instead of SVG")
    arguments = parser.parse_args()
    pages = {path.stem: Report.model_validate_json(path.read_bytes()) for path in sorted(arguments.reports)}
    for name, report in pages.items():
        print(write(report, arguments.out, name, png=arguments.png))
    if len(pages) > 1:
        (arguments.out / "README.md").write_text(contents(pages), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
