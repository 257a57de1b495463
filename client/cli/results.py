"""Commands about results: results, compare, report, and artefact for stored arrays and tables."""

import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from warpfold.client.api import Client
from warpfold.client.artefacts import described
from warpfold.client.cli import output
from warpfold.client.cli.counts import count_option
from warpfold.client.cli.output import Json
from warpfold.client.cli.session import JobId, find, service
from warpfold.client.jobs import result_of
from warpfold.client.live_jobs import LiveJob
from warpfold.client.results import Filter, Picture, Results, with_pictures

_PANEL = "Results"
_REPORTS = {"md": "text/markdown", "html": "text/html", "json": "application/json"}

_VERDICTS = {1: "faster", 0: "no difference shown", -1: "slower"}

Output = Annotated[
    Path | None, typer.Option("--output", "-o", dir_okay=False, help="Write to this file.", show_default="print")
]


class Format(StrEnum):
    """Formats of results."""

    TABLE = "table"
    JSON = "json"
    CSV = "csv"
    PARQUET = "parquet"


class StoredFormat(StrEnum):
    """Formats of a stored result."""

    NPY = "npy"
    ARROW = "arrow"
    PARQUET = "parquet"
    CSV = "csv"


class ReportFormat(StrEnum):
    """Formats of a report."""

    MD = "md"
    HTML = "html"
    JSON = "json"


def register(app: typer.Typer) -> None:
    """Add the commands to `app`."""
    results_example = "Example: warpfold results --op sum --dtype float32 --n-min 1000000 --format csv -o sums.csv"
    app.command(rich_help_panel=_PANEL, epilog=results_example)(results)
    app.command(rich_help_panel=_PANEL, epilog="Example: warpfold compare 5f0c:cub 5f0c:exact")(compare)
    app.command(rich_help_panel=_PANEL, epilog="Example: warpfold artefact 5f0c -o sums.parquet")(artefact)
    app.command(rich_help_panel=_PANEL, epilog="Example: warpfold report 5f0c --format html -o report.html")(report)


def artefact(
    context: typer.Context,
    job: JobId,
    to: Annotated[
        Path | None, typer.Option("--output", "-o", dir_okay=False, help="Write to this file.", show_default="JOB.npy")
    ] = None,
    how: Annotated[
        StoredFormat | None, typer.Option("--format", help="Of the file.", show_default="by its name")
    ] = None,
    delete: Annotated[bool, typer.Option("--delete", help="Delete it at the service, which frees your quota.")] = False,
) -> None:
    """Download the stored result of a job: very many values, or a table."""
    with service(context) as client:
        finished = find(client, job)
        if delete:
            if to is not None or how is not None:
                raise typer.BadParameter("downloads nothing", param_hint="--delete")
            client.delete_artefact(finished.id)
            return
        suffix = how or ("npy" if described(result_of(finished)) is None else _first_format(finished))
        path = to or Path(f"{finished.id}.{suffix}")
        try:
            written = client.artefact(finished, path, None if how is None else how.value)
        except ValueError as error:
            raise typer.BadParameter(str(error), param_hint="--format") from None
    output.say(f"{written}: {written.stat().st_size:,} bytes")


def _first_format(job: LiveJob) -> str:
    stored = described(job.result)
    assert stored is not None, "it was looked for"
    return stored.formats[0]


def results(
    context: typer.Context,
    *,
    job: Annotated[str | None, typer.Option(metavar="ID", help="Points of this job.")] = None,
    kind: Annotated[str | None, typer.Option(help="Of job: reduce, benchmark, accuracy, …")] = None,
    op: Annotated[str | None, typer.Option()] = None,
    dtype: Annotated[str | None, typer.Option()] = None,
    strategy: Annotated[str | None, typer.Option()] = None,
    backend: Annotated[str | None, typer.Option()] = None,
    device: Annotated[str | None, typer.Option(help="The device's name.")] = None,
    host: Annotated[str | None, typer.Option()] = None,
    cache: Annotated[str | None, typer.Option(help="cold or hot.")] = None,
    outcome: Annotated[str | None, typer.Option(help="measured, skipped or failed.")] = None,
    flag: Annotated[
        str | None, typer.Option(help="throttled, contended, unconverged, suspect, no_ceiling or first_run.")
    ] = None,
    n_min: Annotated[int | None, count_option("Fewest elements.")] = None,
    n_max: Annotated[int | None, count_option("Most elements.")] = None,
    rows: Annotated[int | None, count_option("Of matrices or tables.")] = None,
    columns: Annotated[int | None, count_option("Of matrices.")] = None,
    axis: Annotated[int | None, typer.Option(min=0, max=1, help="Along which matrices were reduced.")] = None,
    segments: Annotated[int | None, count_option("Their mean length.")] = None,
    groups: Annotated[int | None, count_option("Of tables.")] = None,
    key_order: Annotated[str | None, typer.Option(help="Of tables: random or sorted.")] = None,
    limit: Annotated[
        int | None,
        count_option("How many at most.", "--limit", "-n", least=1, show_default="50; 10,000 for csv and parquet"),
    ] = None,
    how: Annotated[Format, typer.Option("--format", help="Of the answer.")] = Format.TABLE,
    to: Output = None,
    as_json: Json = False,
) -> None:
    """List measurements across jobs, newest first."""
    wanted = {name: value for name, value in locals().items() if name in Filter.__annotations__}
    how = _format_of(how, to, as_json=as_json)
    with service(context) as client:
        if job is not None:
            wanted["job_id"] = find(client, job).id
        if how in (Format.CSV, Format.PARQUET):
            _write(client.export("csv" if how is Format.CSV else "parquet", limit=limit or 10_000, **wanted), to)
            return
        points = client.results(limit=limit or 50, **wanted)
    if how is Format.JSON:
        _write("".join(f"{output.line(row)}\n" for row in points).encode(), to)
    else:
        _show(points)


def _format_of(how: Format, to: Path | None, *, as_json: bool) -> Format:
    """The format of the answer. Raises BadParameter where the options contradict each other."""
    if as_json and how not in (Format.TABLE, Format.JSON):
        raise typer.BadParameter(f"--json is another format than {how}; choose one", param_hint="--format")
    how = Format.JSON if as_json else how
    if how is Format.TABLE and to is not None:
        raise typer.BadParameter("a file is json, csv or parquet: say which with --format", param_hint="--output")
    if how is Format.PARQUET and to is None and sys.stdout.isatty():
        raise typer.BadParameter("Parquet is not text: name a file with --output", param_hint="--format")
    return how


def _show(points: Results) -> None:
    """Print a table of measurements."""
    names = ("op", "dtype", "n", "strategy", "device", "cache", "ms", "GB/s", "% of ceiling", "error", "remarks")
    output.table(
        names,
        (
            [
                *(row.op, row.dtype, row.size_in_words(row.n), row.strategy, row.device, row.cache),
                *(row.kernel_ms, row.gb_per_s),
                *(row.percent_of_ceiling, row.relative_error),
                " ".join([*([] if row.outcome == "measured" else [row.outcome]), *row.flags]),
            ]
            for row in points
        ),
        right=("n", "ms", "GB/s", "% of ceiling", "error"),
        fold="device",
    )


def compare(
    context: typer.Context,
    baseline: Annotated[str, typer.Argument(metavar="BASELINE", help="A benchmark job, or JOB:STRATEGY.")],
    candidate: Annotated[str, typer.Argument(metavar="CANDIDATE", help="Likewise: it is compared with BASELINE.")],
    *,
    across: Annotated[bool, typer.Option("--across", help="Compare different devices or drivers, too.")] = False,
    as_json: Json = False,
) -> None:
    """Compare two benchmarks, or two strategies, case by case, with intervals of confidence."""
    with service(context) as client:
        sides = []
        for side in (baseline, candidate):
            job, colon, strategy = side.partition(":")
            sides.append(find(client, job).id + colon + strategy)
        answer = client.compare(*sides, across=across)
    if as_json:
        output.document(answer)
        return
    names = ("op", "dtype", "n", "cache", "baseline", "ms", "candidate", "ms ", "speed-up", "95 % interval", "verdict")
    rows = []
    for item in answer["items"]:
        case, first, second, ratio = (item[name] for name in ("case", "baseline", "candidate", "speedup"))
        known = ratio["low"] is not None
        rows.append(
            [
                *(case["op"], case["dtype"], case["n"], case["cache"]),
                *(first["strategy"], first["kernel_ms"], second["strategy"], second["kernel_ms"]),
                f"{ratio['value']:.3f}",
                f"{ratio['low']:.3f} to {ratio['high']:.3f}" if known else "too few samples",
                _VERDICTS[(ratio["value"] > 1) - (ratio["value"] < 1) if ratio["differs"] else 0],
            ]
        )
    output.table(names, rows, right=("n", "ms", "ms ", "speed-up"), fold="95 % interval")
    if answer["speedup"] is not None:
        shown = "" if answer.get("speedup_differs", True) else ", which shows no difference"
        typer.echo(f"geometric mean of the speed-ups: {answer['speedup']:.3f}{shown}")
    for left_out in answer["left_out"]:
        point, case = left_out["point"], left_out["case"]
        output.say(f"left out: {point['strategy']} {case['op']} {case['dtype']} {case['n']:,}: {left_out['why']}")


def report(
    context: typer.Context,
    job_id: JobId,
    *,
    how: Annotated[ReportFormat, typer.Option("--format", help="Of the report.")] = ReportFormat.MD,
    to: Output = None,
) -> None:
    """Write the report of a job that has ended. With --output its pictures go into the folder `figures` beside it."""
    with service(context) as client:
        text = client.report(find(client, job_id).id, _REPORTS[how])
        if how is ReportFormat.MD:
            text = _with_figures(client, text, to) if to is not None else _without_figures(text)
    _write(text.encode(), to)


def _with_figures(client: Client, text: str, to: Path) -> str:
    """The report with its pictures in local files, because the service's own addresses need a token."""
    figures = to.parent / "figures"

    def kept(picture: Picture) -> str:
        figures.mkdir(exist_ok=True)
        file = figures / f"{to.stem}-{picture.name}"
        file.write_bytes(client.picture(picture.address))
        return f"![{picture.words}](<figures/{file.name}>)"

    return with_pictures(text, kept)


def _without_figures(text: str) -> str:
    """The report with the text of each picture in place of the picture."""
    left_out: list[str] = []

    def link_of(picture: Picture) -> str:
        left_out.append(picture.name)
        return f"*Picture: {picture.words}*"

    text = with_pictures(text, link_of)
    if left_out:
        several = f"{len(left_out)} pictures are" if len(left_out) > 1 else "a picture is"
        output.say(f"{several} left out: --output FILE writes them beside the report, --format html holds them")
    return text


def _write(content: bytes, to: Path | None) -> None:
    if to is None:
        stream = typer.get_binary_stream("stdout")
        stream.write(content if content.endswith(b"\n") or b"\0" in content else content + b"\n")
        stream.flush()
        return
    to.write_bytes(content)
    output.say(f"wrote {len(content):,} bytes to {to}")
