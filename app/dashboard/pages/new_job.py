"""New job: a form made from the schema of specs, which shows the same submission in curl and Python.

A large form is read, checked and rendered beside the event loop, as large bodies of the api are.
"""

from collections.abc import Iterator, Sequence
from typing import Annotated, Any, Literal
from uuid import UUID, uuid4

from fastapi import Query
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from warpfold.app.auth.access_tokens import Principal
from warpfold.app.dashboard.forms.contents import look_for, offering, problems_of
from warpfold.app.dashboard.forms.fields import Field, Form, Group
from warpfold.app.dashboard.forms.reading import blank, carried_over, is_changed, texts_in, typed_from
from warpfold.app.dashboard.forms.schema import kinds
from warpfold.app.dashboard.forms.submission import (
    SentForm,
    Typed,
    form_in,
    read_submission,
    submission_from,
    submission_of,
    typed_in,
)
from warpfold.app.dashboard.rendering import page, part
from warpfold.app.dashboard.routes import LargeFormRoute
from warpfold.app.dashboard.routes import router as pages
from warpfold.app.dashboard.visitors import Visitor
from warpfold.app.datasets import service as datasets
from warpfold.app.datasets.repository import Dataset
from warpfold.app.http.context import Context, Using
from warpfold.app.http.error_handlers import as_api_error
from warpfold.app.http.errors import ApiError, FieldProblem, UnsupportedMedia
from warpfold.app.http.large_bodies import LARGE_BYTES
from warpfold.app.http.requests import declared_bytes
from warpfold.app.jobs import service
from warpfold.app.jobs.accept import Key, check
from warpfold.app.sources import look
from warpfold.kernels.errors import InvalidInput

_FORM = "application/x-www-form-urlencoded"

Inside = Annotated[str, Query(max_length=1024, pattern=r"^[^\x00]*$")]

router = pages(LargeFormRoute)


@router.get("/jobs/new")
async def show(
    *,
    request: Request,
    visitor: Visitor,
    context: Using,
    kind: Annotated[str, Query(max_length=32)] = "reduce",
    source: Annotated[UUID | None, Query(alias="from")] = None,
    dataset: Annotated[str, Query(pattern=r"^([0-9a-f]{64})?$")] = "",
    column: Inside = "",
    array: Inside = "",
) -> Response:
    """The form of a kind, with the schema's example in it, or with the spec of an earlier job, or with a sum of an
    uploaded file, or of a column or an array in it."""
    address, most = _address(request), context.settings.max_values
    if dataset:
        spec = _sum_of(await datasets.get(context, visitor, dataset), column, array)
        submission = submission_of(typed_from(spec), address, most)
    elif source is None:
        submission = submission_of(blank(kind if kind in kinds() else kinds()[0]), address, most)
    else:
        stored = (await service.get(context, visitor, source)).spec
        if len(stored) <= LARGE_BYTES:
            submission = submission_from(stored, address, most)
        else:
            async with context.large_bodies.place(visitor.id):
                submission = await context.large_bodies.apart(
                    visitor.id, len(stored), submission_from, stored, address, most
                )
    return await _page(request, context, visitor, submission)


@router.post("/jobs/new/fields")
async def fields(
    request: Request,
    visitor: Visitor,
    context: Using,
    look_into: Annotated[Literal["", "source", "other"], Query(alias="look")] = "",
) -> Response:
    """The fields again, after a choice that changes which there are; typed values stay. After a look into the file
    that a group of fields names, they offer its columns or arrays."""
    body = await small_body(request)
    if body is not None:
        typed = typed_in(body)
    else:
        async with context.large_bodies.place(visitor.id):
            large = await request.body()
            typed = await context.large_bodies.apart(visitor.id, len(large), typed_in, large)
    typed = carried_over(typed.get("kind", [""])[0], typed)
    form, problems = form_in(typed), tuple[FieldProblem, ...]()
    if look_into:
        try:
            inspection = await look(context, visitor, look_for(form, typed, look_into))
            form = offering(form, look_into, inspection, typed)
        except ApiError as error:
            problems = problems_of(error, look_into)
    model = {
        **_fields(form, typed, problems),
        "looked": bool(look_into),
        "looked_at": look_into and f"?look={look_into}",
    }
    rendered = part("new_job_fields", **model) if body else await run_in_threadpool(part, "new_job_fields", **model)
    answer = rendered.response(request)
    answer.headers["HX-Trigger-After-Settle"] = "reshaped"
    return answer


@router.post("/jobs/new/preview")
async def preview(request: Request, visitor: Visitor, context: Using) -> Response:
    """Show the submission in curl and Python, its faults so far, and the parts that no slot could run."""
    submission = await _sent(request, context, visitor)
    return part("new_job_preview", **await _preview(context, submission)).response(request)


@router.post("/jobs/new")
async def submit(request: Request, visitor: Visitor, context: Using) -> Response:
    """Submit, and go to the job. A bad value comes back marked, with everything else as it was."""
    submission = await _sent(request, context, visitor)
    if submission.spec is None:
        return await _page(request, context, visitor, submission, submission.wrong)
    try:
        job = await service.submit(context, visitor, submission.spec, _key(submission))
    except InvalidInput as error:
        return await _page(request, context, visitor, submission, as_api_error(error))
    except ApiError as error:
        return await _page(request, context, visitor, submission, error)
    return RedirectResponse(f"/jobs/{job.id}", 303)


async def _sent(request: Request, context: Context, visitor: Principal) -> SentForm:
    """The submission that a request carries."""
    address, most = _address(request), context.settings.max_values
    body = await small_body(request)
    if body is not None:
        return read_submission(body, address, most)
    async with context.large_bodies.place(visitor.id):
        large = await request.body()
        return await context.large_bodies.apart(visitor.id, len(large), read_submission, large, address, most)


def _sum_of(dataset: Dataset, column: str, array: str) -> dict[str, Any]:
    """The spec of a sum of an uploaded file, or of what it has of this name."""
    source = {"type": "dataset", "id": dataset.contents.id, "name": dataset.name, "column": column, "array": array}
    return {"kind": "reduce", "op": "sum", "source": {name: value for name, value in source.items() if value}}


async def small_body(request: Request) -> bytes | None:
    """The body of a form; None, and nothing is read yet, if it is large or its size is not known."""
    media_type = request.headers.get("content-type", _FORM).partition(";")[0].strip().lower()
    if media_type != _FORM:
        raise UnsupportedMedia(f"A form must be {_FORM}, not {media_type[:100]}.")
    declared = declared_bytes(request.headers)
    return await request.body() if declared is not None and declared <= LARGE_BYTES else None


def _address(request: Request) -> str:
    return str(request.base_url).rstrip("/")


def _key(submission: SentForm) -> Key | None:
    """A form sent twice makes one job; the same form with other values makes another."""
    nonce = submission.typed.get("nonce", [""])[0]
    digest = submission.digest
    return Key(f"form-{nonce[:64]}-{digest.hex()[:32]}", digest) if nonce.isalnum() else None


async def _page(
    request: Request, context: Context, visitor: Principal, submission: SentForm, error: ApiError | None = None
) -> Response:
    model = {
        "kinds": kinds(),
        "takes_file": any(field.name == "source.type" for field in submission.form.flat()),
        "nonce": submission.typed.get("nonce", [uuid4().hex])[0],
        "error": error,
        **_fields(submission.form, submission.typed, () if error is None else error.errors),
        **await _preview(context, submission),
    }
    status = 200 if error is None else error.status
    if submission.large:
        return await run_in_threadpool(page, request, "new_job", status, user=visitor, **model)
    return page(request, "new_job", status, user=visitor, **model)


def _fields(form: Form, typed: Typed, problems: Sequence[FieldProblem] = ()) -> dict[str, Any]:
    names = sorted((field.name for field in form.flat()), key=len, reverse=True)
    faults: dict[str, list[str]] = {}
    others: list[str] = []
    for problem in problems:
        at = next((name for name in names if f"{problem.field}.".startswith(f"{name}.")), None)
        if at is None:
            others.append(f"{problem.field}: {problem.message}" if problem.field else problem.message)
        else:
            faults.setdefault(at, []).append(problem.message)
    return {
        "form": form,
        "looked": False,
        "looked_at": "",
        "texts": {field.name: texts_in(field, typed) for field in form.flat()},
        "faults": faults,
        "others": others,
        "opened": {
            name
            for name, parts in _apart(form)
            if any(each.name in faults or is_changed(each, typed) for each in parts)
        },
    }


def _apart(form: Form) -> Iterator[tuple[str, Sequence[Field]]]:
    """The fields that a form shows only when they are asked for: those of each group by its name, and the others."""
    for group in form.main:
        if isinstance(group, Group):
            yield group.name, Form(form.kind, "", (), group.more).flat()
    yield "more", Form(form.kind, "", (), form.more).flat()


async def _preview(context: Context, submission: SentForm) -> dict[str, Any]:
    wrong: ApiError | None = submission.wrong
    unable: tuple[service.UnservedJob, ...] = ()
    if submission.spec is not None:
        try:
            check(submission.spec, context.settings)
            unable = await service.unable(context, submission.spec)
        except InvalidInput as error:
            wrong = as_api_error(error)
        except ApiError as error:
            wrong = error
    return {"curl": submission.curl, "python": submission.python, "wrong": wrong, "unable": unable}
