"""The page Compare: it shows two or more jobs beside each other."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any
from uuid import UUID

from fastapi import Query
from starlette.requests import Request
from starlette.responses import Response

from warpfold.app.auth.access_tokens import Principal
from warpfold.app.dashboard.rendering import page
from warpfold.app.dashboard.routes import router as pages
from warpfold.app.dashboard.rows import JobRow
from warpfold.app.dashboard.visitors import Visitor
from warpfold.app.http.context import Context, Using
from warpfold.app.http.errors import Invalid, NotFound
from warpfold.app.jobs import service as jobs
from warpfold.app.jobs.store import Job
from warpfold.app.json_view import json_view_of
from warpfold.app.results import comparison as results
from warpfold.app.results.comparison_views import ComparisonView

MOST = 6
_LONGEST = 300

router = pages()


@dataclass(frozen=True, slots=True)
class FieldRow:
    """The values that all jobs have in one field; `differs` where they are not equal."""

    name: str
    values: Sequence[str]
    differs: bool


@dataclass(frozen=True, slots=True)
class ComparedBenchmark:
    """A benchmark compared with the first one, or the reason why the two cannot be compared."""

    job: JobRow
    comparison: ComparisonView | None
    why_not: str | None


@router.get("/compare")
async def show(
    request: Request,
    visitor: Visitor,
    context: Using,
    job: Annotated[list[str] | None, Query(max_length=MOST)] = None,
    across: bool = False,
) -> Response:
    """Show the jobs that the address names, and a form to name more."""
    named = [_id(text) for text in job or () if text.strip()]
    compared = [await jobs.get(context, visitor, job_id) for job_id in dict.fromkeys(named)]
    rows = [JobRow.of(row, visitor) for row in compared]
    specs = _lines([json.loads(row.spec) for row in compared])
    outcomes = _lines([_outcome(row) for row in compared])
    return page(
        request,
        "compare",
        user=visitor,
        rows=rows,
        tables=[("Outcome", outcomes), ("Spec", specs)],
        same_bits=_same_bits(compared),
        faceoffs=await _faceoffs(context, visitor, compared, rows, across=across),
        across=across,
        room=max(0, MOST - len(compared)),
    )


def _id(text: str) -> UUID:
    """The id in `text`, which is a job's id or the address of its page."""
    try:
        return UUID(text.strip().rstrip("/").rpartition("/")[2])
    except ValueError:
        raise Invalid.of("job", f"{text[:80]!r} is not the id of a job") from None


def _outcome(job: Job) -> Mapping[str, Any]:
    result = {} if job.result is None else json.loads(job.result)
    known = {name: value for name, value in result.items() if name != "state"}
    return {"status": job.status.value, **({"error": job.error} if job.error else {}), **known}


def _lines(objects: Sequence[Mapping[str, Any]]) -> list[FieldRow]:
    columns = [dict(json_view_of("", value).rows) for value in objects]
    names = list(dict.fromkeys(name for column in columns for name in column))
    lines = []
    for name in names:
        values = [column.get(name, "")[:_LONGEST] for column in columns]
        lines.append(FieldRow(name, values, differs=len(set(values)) > 1))
    return lines


def _same_bits(compared: Sequence[Job]) -> bool | None:
    """Whether all values are the same, bit for bit; None unless every job has a value."""
    objects = [json.loads(job.result) for job in compared if job.result is not None]
    if len(objects) < 2 or len(objects) < len(compared) or not all("value" in result for result in objects):
        return None
    return len({(result.get("hex") or repr(result["value"]), result.get("dtype")) for result in objects}) == 1


async def _faceoffs(
    context: Context, visitor: Principal, compared: Sequence[Job], rows: Sequence[JobRow], *, across: bool
) -> list[ComparedBenchmark]:
    """Compare every other benchmark with the first."""
    benchmarks = [job.id for job in compared if job.kind == "benchmark"]
    shown = {row.id: row for row in rows}
    faceoffs = []
    for job_id in benchmarks[1:]:
        try:
            comparison = await results.compare(context, visitor, str(benchmarks[0]), str(job_id), across=across)
        except (Invalid, NotFound) as error:
            faceoffs.append(ComparedBenchmark(shown[job_id], None, error.detail))
        else:
            faceoffs.append(ComparedBenchmark(shown[job_id], ComparisonView.of(comparison), None))
    return faceoffs
