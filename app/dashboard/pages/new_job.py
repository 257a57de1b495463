"""New job: a form made from the schema of specs, which shows the same submission in curl and Python."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Annotated, Any
from uuid import UUID, uuid4

from fastapi import Query
from pydantic import ValidationError
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from warpfold.app.auth.access_tokens import Principal
from warpfold.app.dashboard.forms import submission as equivalents
from warpfold.app.dashboard.forms.fields import Form
from warpfold.app.dashboard.forms.reading import blank, form_for, spec_of, texts_in, typed_from
from warpfold.app.dashboard.forms.schema import kinds
from warpfold.app.dashboard.rendering import page, part
from warpfold.app.dashboard.routes import router as pages
from warpfold.app.dashboard.visitors import Contributor
from warpfold.app.http.context import Context, Using
from warpfold.app.http.error_handlers import as_api_error, spec_problem
from warpfold.app.http.errors import ApiError, FieldProblem
from warpfold.app.jobs import service
from warpfold.app.jobs.accept import Key, check
from warpfold.contract.jobs import JobSpec, job_spec
from warpfold.kernels.errors import InvalidInput

Typed = dict[str, list[str]]

router = pages()


@router.get("/jobs/new")
async def show(
    request: Request,
    visitor: Contributor,
    context: Using,
    kind: Annotated[str, Query(max_length=32)] = "reduce",
    source: Annotated[UUID | None, Query(alias="from")] = None,
) -> Response:
    """The form of a kind, with the schema's example in it, or with the spec of an earlier job."""
    if source is not None:
        typed = typed_from(json.loads((await service.get(context, source)).spec))
    else:
        typed = blank(kind if kind in kinds() else kinds()[0])
    return await _page(request, context, visitor, typed)


@router.post("/jobs/new/fields")
async def fields(request: Request, visitor: Contributor) -> Response:
    """The fields again, after a choice that changes which there are; what was typed stays."""
    typed = await _typed(request)
    answer = part("new_job_fields", **_fields(_form(typed), typed)).response(request)
    answer.headers["HX-Trigger-After-Settle"] = "reshaped"
    return answer


@router.post("/jobs/new/preview")
async def preview(request: Request, visitor: Contributor, context: Using) -> Response:
    """The same submission in curl and Python, what is wrong with it so far, and what no slot could run of it."""
    typed = await _typed(request)
    return part("new_job_preview", **await _preview(request, context, _form(typed), typed)).response(request)


@router.post("/jobs/new")
async def submit(request: Request, visitor: Contributor, context: Using) -> Response:
    """Submit, and go to the job. A bad value comes back marked, with everything else as it was."""
    typed = await _typed(request)
    body = json.dumps(spec_of(_form(typed), typed))
    try:
        spec = _validated(body)
        submitted = await service.submit(context, visitor, spec, _key(typed, body))
    except InvalidInput as error:
        return await _page(request, context, visitor, typed, as_api_error(error))
    except ApiError as error:
        return await _page(request, context, visitor, typed, error)
    return RedirectResponse(f"/jobs/{submitted.job.id}", 303)


def _validated(body: str) -> JobSpec:
    try:
        return job_spec.validate_json(body)
    except ValidationError as error:
        raise spec_problem(error) from None


def _key(typed: Typed, body: str) -> Key | None:
    """A form sent twice makes one job; the same form with other values makes another."""
    nonce = typed.get("nonce", [""])[0]
    content = hashlib.sha256(body.encode())
    return Key(f"form-{nonce[:64]}-{content.hexdigest()[:32]}", content.digest()) if nonce.isalnum() else None


async def _typed(request: Request) -> Typed:
    typed: Typed = {}
    for name, value in (await request.form()).multi_items():
        if isinstance(value, str):
            typed.setdefault(name, []).append(value)
    return typed


def _form(typed: Typed) -> Form:
    return form_for(typed.get("kind", [""])[0], typed)


async def _page(
    request: Request, context: Context, visitor: Principal, typed: Typed, error: ApiError | None = None
) -> Response:
    form = _form(typed)
    return page(
        request,
        "new_job",
        200 if error is None else error.status,
        user=visitor,
        kinds=kinds(),
        nonce=typed.get("nonce", [uuid4().hex])[0],
        error=error,
        **_fields(form, typed, () if error is None else error.errors),
        **await _preview(request, context, form, typed),
    )


def _fields(form: Form, typed: Typed, problems: Sequence[FieldProblem] = ()) -> dict[str, Any]:
    names = sorted((field.name for field in form.flat()), key=len, reverse=True)
    faults: dict[str, list[str]] = {}
    others: list[str] = []
    for one in problems:
        at = next((name for name in names if f"{one.field}.".startswith(f"{name}.")), None)
        if at is None:
            others.append(f"{one.field}: {one.message}" if one.field else one.message)
        else:
            faults.setdefault(at, []).append(one.message)
    return {
        "form": form,
        "texts": {field.name: texts_in(field, typed) for field in form.flat()},
        "faults": faults,
        "others": others,
        "open_more": any(field.name in faults for field in _more(form)),
    }


def _more(form: Form) -> Sequence[Any]:
    return Form(form.kind, "", (), form.more).flat()


async def _preview(
    request: Request, context: Context, form: Form, typed: Mapping[str, Sequence[str]]
) -> dict[str, Any]:
    spec = spec_of(form, typed)
    address = str(request.base_url).rstrip("/")
    wrong: ApiError | None = None
    unable: tuple[service.Unable, ...] = ()
    try:
        valid = _validated(json.dumps(spec))
        check(valid, context.settings)
        unable = await service.unable(context, valid)
    except InvalidInput as error:
        wrong = as_api_error(error)
    except ApiError as error:
        wrong = error
    return {
        "curl": equivalents.curl_of(address, spec),
        "python": equivalents.python_of(address, spec),
        "wrong": wrong,
        "unable": unable,
    }
