"""Every error that a request can meet becomes a problem."""

from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from pydantic import ValidationError
from sqlalchemy.exc import DBAPIError
from starlette.exceptions import HTTPException
from starlette.responses import Response

from warpfold.app.db import DATABASE_LOST
from warpfold.app.http.errors import ApiError, FieldProblem, Invalid, Unavailable, problem, problem_response
from warpfold.app.http.middleware import REQUEST_ID, allowed
from warpfold.contract.faults import in_words
from warpfold.contract.jobs import KINDS, SPECS
from warpfold.contract.sources import SOURCES, TAGGED_FIELDS, TAGGED_LIST
from warpfold.contract.sources.row_filter import FILTER_TAGS
from warpfold.kernels.errors import InvalidInput

_MOST_ERRORS = 20


def as_api_error(error: ValidationError | InvalidInput) -> ApiError:
    """The answer to a body or a value that failed validation."""
    if isinstance(error, InvalidInput):
        return Invalid.of(error.field or "", str(error))
    return Invalid.at(field_problems(error.errors(include_url=False, include_input=False)))


def field_problems(errors: Iterable[Mapping[str, Any]]) -> list[FieldProblem]:
    """Pydantic's errors with dotted field names, without the tags of unions; of many errors only the first."""
    problems: list[FieldProblem] = []
    for error in errors:
        field = _field(error)
        if error["type"] == "too_short" and any(problem.field.startswith(f"{field}.") for problem in problems):
            continue  # the error is that the field is missing
        problems.append(FieldProblem(field=field, message=_message(error)))
        if len(problems) == _MOST_ERRORS:
            break
    return problems


def _field(error: Mapping[str, Any]) -> str:
    location, context = error["loc"], error.get("ctx", {})
    cause = context.get("error")
    if isinstance(cause, InvalidInput) and cause.field is not None:
        of_a_source, _, within = cause.field.partition(".")
        place = next((place for place, part in enumerate(location) if part in TAGGED_FIELDS), None)
        if of_a_source == "source" and place is not None:
            # An error of a source names the field `source`, wherever in the spec the source stands.
            return f"{dotted(location[: place + 1])}.{within}".rstrip(".")
        # An error of a child names the fields of a job by itself.
        return f"{dotted(location[:3])}.{cause.field}" if "children" in location[:1] else cause.field
    if error["type"].startswith("union_tag"):
        return f"{dotted(location)}.{context['discriminator'].strip(chr(39))}".lstrip(".")
    return dotted(location)


def _message(error: Mapping[str, Any]) -> str:
    return in_words(error) + (_near(error) if error["type"] == "extra_forbidden" else "")


def _near(error: Mapping[str, Any]) -> str:
    """The name that is most like that of a field which a spec or a source does not have."""
    *outer, wrong = error["loc"]
    known: Iterable[str] = ()
    match outer:
        case [] if error.get("kind") in SPECS:
            known = SPECS[error["kind"]].model_fields
        case [*_, str(field), str(tag)] if field in TAGGED_FIELDS and tag in SOURCES:
            known = SOURCES[tag].model_fields
    near = get_close_matches(str(wrong)[:64], list(known), n=1)
    return f"; did you mean {near[0]}?" if near else ""


def request_problem(error: RequestValidationError) -> ApiError:
    """The answer to a request with a bad body, query, path or header."""
    # Locations begin with the place: body, query, path, header.
    return Invalid.at(field_problems(_placed(details, details["loc"]) for details in error.errors()))


def spec_problem(error: ValidationError) -> ApiError:
    """The answer to a spec that failed validation outside of a request."""
    return Invalid.at(field_problems(_placed(details, ("body", *details["loc"])) for details in error.errors()))


def dotted(location: Sequence[str | int]) -> str:
    """A location in a value as people write it: ("source", "values", "values", 3) is source.values.3."""
    parts: list[str] = []
    tag_follows = filters = False
    for part in location:
        if tag_follows or part == "[key]" or (filters and part in FILTER_TAGS):
            tag_follows = False
            continue
        parts.append(str(part)[:64])
        swept = parts[-2:] == ["sweep", "over"]  # a window has a source of that name, a sweep has lists of values
        tag_follows = (part in TAGGED_FIELDS and not swept) or part == "spec" or parts[-2:-1] == [TAGGED_LIST]
        filters = filters or part == "filter"
    return ".".join(parts)


def install(app: FastAPI) -> None:
    """Answer every error that `app` can meet as a problem."""
    app.add_exception_handler(ApiError, _api_error)
    app.add_exception_handler(HTTPException, _http_exception)
    app.add_exception_handler(RequestValidationError, _request_invalid)
    app.add_exception_handler(InvalidInput, _invalid_input)
    for lost in DATABASE_LOST:
        app.add_exception_handler(lost, _database_lost)
    app.add_exception_handler(DBAPIError, _database_error)
    app.add_exception_handler(Exception, _unexpected)


async def _api_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, ApiError)
    return problem_response(error)


async def _http_exception(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    title = HTTPStatus(error.status_code).phrase
    detail, headers = error.detail, error.headers or {}
    if error.status_code == 404:
        detail = f"There is nothing at {request.url.path[:200]}."
    elif error.status_code == 405:
        detail = f"{request.url.path[:200]} does not take {request.method}."
        headers = {"Allow": await allowed(request.app.routes, request.scope)}
    kind = title.lower().replace(" ", "-")
    return problem(error.status_code, kind, title, detail, headers=headers)


async def _request_invalid(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    return problem_response(request_problem(error))


def _placed(details: Mapping[str, Any], location: Sequence[str | int]) -> dict[str, Any]:
    """An error with its location in the spec, and with the kind of the spec if it is of one."""
    place, *rest = location
    # A spec is one of several kinds: in the location of an error, its kind comes first.
    if place == "body" and rest[:1] and rest[0] in KINDS:
        return {**details, "loc": rest[1:], "kind": rest[0]}
    return {**details, "loc": rest}


async def _invalid_input(request: Request, error: Exception) -> Response:
    assert isinstance(error, InvalidInput)
    return problem_response(as_api_error(error))


async def _database_lost(request: Request, error: Exception) -> Response:
    return problem_response(Unavailable("The database cannot be reached at the moment; try again."))


async def _database_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, DBAPIError)
    if error.connection_invalidated:
        return await _database_lost(request, error)
    return await _unexpected(request, error)


async def _unexpected(request: Request, error: Exception) -> Response:
    # The traceback goes to the log alone; the caller sees nothing of it. This answer does not pass the middleware that
    # names the request, and uvicorn closes the connection after it.
    request_id = request.state.request_id
    detail = f"Something went wrong in the service; its log has the details, under request {request_id}."
    return problem_response(ApiError(detail, headers={REQUEST_ID: request_id, "Connection": "close"}))
