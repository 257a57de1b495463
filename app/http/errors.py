"""The problems (RFC 9457, `application/problem+json`) that the api answers with, one class a kind."""

import json
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import ClassVar

from pydantic import BaseModel, ConfigDict, Field
from starlette.exceptions import HTTPException
from starlette.responses import Response

MEDIA_TYPE = "application/problem+json"
NOT_KEPT: Mapping[str, str] = MappingProxyType({"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"})
"""Headers of problems: no cache may keep an error."""


class FieldProblem(BaseModel):
    """One part of a request and what is wrong with it."""

    field: str = Field(
        description="The path of the field in the body, with dots, or a parameter's name; empty for the whole."
    )
    message: str


class Problem(BaseModel):
    """What went wrong, for programs (`type`, `status`) and for people (`title`, `detail`)."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "type": "urn:warpfold:invalid-input",
                    "title": "The request cannot be carried out as written",
                    "status": 422,
                    "detail": "op: unknown op 'total'; known: sum, mean, prod, …",
                    "errors": [{"field": "op", "message": "unknown op 'total'; known: sum, mean, prod, …"}],
                }
            ]
        }
    )

    type: str = Field(description="The kind of problem, by a name that does not change.")
    title: str
    status: int
    detail: str
    errors: list[FieldProblem] = Field(default=[], description="The parts of the request that are at fault.")


class ApiError(HTTPException):
    """Something failed inside the service. This is the base of all errors that are answered as problems.

    `detail` is a sentence for people; `extension` are further members of the problem.
    """

    status: ClassVar[int] = 500
    type: ClassVar[str] = "internal"
    title: ClassVar[str] = "The service failed"

    def __init_subclass__(cls, *, type: str, status: int | None = None) -> None:
        """The title of a kind of problem is what its text says."""
        cls.type, cls.status, cls.title = type, status or cls.status, (cls.__doc__ or "").removesuffix(".")

    def __init__(
        self,
        detail: str,
        *,
        errors: Sequence[FieldProblem] = (),
        headers: Mapping[str, str] = MappingProxyType({}),
        extension: Mapping[str, object] = MappingProxyType({}),
    ) -> None:
        super().__init__(self.status, detail, headers)
        self.errors = tuple(errors)
        self.extension = extension


class BadRequest(ApiError, status=400, type="bad-request"):
    """The request cannot be read."""


class Unauthorized(ApiError, status=401, type="unauthorized"):
    """A valid token is needed."""

    def __init__(self, detail: str) -> None:
        super().__init__(detail, headers={"WWW-Authenticate": 'Bearer realm="warpfold"'})


class Forbidden(ApiError, status=403, type="forbidden"):
    """The token does not allow this."""


class NotFound(ApiError, status=404, type="not-found"):
    """There is no such thing."""


def no_such_batch() -> NotFound:
    """The answer to a request about an unknown batch, or about one that the user may not see."""
    return NotFound("There is no batch with this id that you may see, or it was removed when its time was over.")


def no_such_job() -> NotFound:
    """The answer to a request about an unknown job, or about one that the user may not see."""
    return NotFound("There is no job with this id that you may see, or it was removed when its time was over.")


class NotAcceptable(ApiError, status=406, type="not-acceptable"):
    """None of the accepted media types is offered."""


class TimedOut(ApiError, status=408, type="request-timeout"):
    """The request took too long to arrive."""


class Conflict(ApiError, status=409, type="conflict"):
    """The present state does not allow this."""


class UploadMoved(Conflict, type="mismatching-upload-offset"):
    """The upload stands at another offset."""

    @classmethod
    def at(cls, expected: int, provided: int) -> "UploadMoved":
        """The problem of an upload that goes on from `expected`, not from `provided`."""
        return cls(
            f"The upload goes on from byte {expected}, not from {provided}.",
            headers={"Upload-Offset": str(expected), "Upload-Complete": "?0"},
            extension={"expected-offset": expected, "provided-offset": provided},
        )


class Gone(ApiError, status=410, type="gone"):
    """It is no longer here."""


class TooLarge(ApiError, status=413, type="too-large"):
    """The request is too large."""


class UriTooLong(ApiError, status=414, type="uri-too-long"):
    """The target of the request is too long."""


class UnsupportedMedia(ApiError, status=415, type="unsupported-media-type"):
    """The body's media type is not supported."""


class RangeNotSatisfiable(ApiError, status=416, type="range-not-satisfiable"):
    """The file has none of these bytes."""


class Invalid(ApiError, status=422, type="invalid-input"):
    """The request cannot be carried out as written."""

    @classmethod
    def of(cls, field: str, message: str) -> "Invalid":
        """The problem of one field."""
        return cls.at([FieldProblem(field=field, message=message)])

    @classmethod
    def at(cls, errors: Sequence[FieldProblem]) -> "Invalid":
        """The problems of several fields."""
        sentences = (f"{error.field}: {error.message}" if error.field else error.message for error in errors)
        return cls("; ".join(sentences), errors=errors)


class TooMany(ApiError, status=429, type="too-many"):
    """Too many requests or jobs."""

    def __init__(self, detail: str, retry_after_s: int, extension: Mapping[str, object] = MappingProxyType({})) -> None:
        super().__init__(detail, headers={"Retry-After": str(retry_after_s)}, extension=extension)


class HeadTooLarge(ApiError, status=431, type="head-too-large"):
    """The head of the request is too large."""


class Unavailable(ApiError, status=503, type="unavailable"):
    """The service cannot do this at the moment."""

    def __init__(
        self, detail: str, retry_after_s: int = 1, extension: Mapping[str, object] = MappingProxyType({})
    ) -> None:
        super().__init__(detail, headers={"Retry-After": str(retry_after_s)}, extension=extension)


class VersionNotSupported(ApiError, status=505, type="http-version-not-supported"):
    """The version of HTTP is not supported."""

    @classmethod
    def of(cls, version: str) -> "VersionNotSupported":
        """The problem of a request that is in another `version` of HTTP, or that names none (0.9)."""
        named = "names no version of HTTP" if version == "0.9" else f"is in HTTP/{version}"
        return cls(f"The request {named}; this server speaks HTTP/1.1 and HTTP/1.0.")


class NoRoom(ApiError, status=507, type="insufficient-storage"):
    """The service has no room for this."""


def problem_response(error: ApiError) -> Response:
    """The answer to an error."""
    return problem(
        error.status,
        error.type,
        error.title,
        error.detail,
        errors=error.errors,
        headers=error.headers or {},
        extension=error.extension,
    )


def problem(
    status: int,
    kind: str,
    title: str,
    detail: str,
    *,
    errors: Sequence[FieldProblem] = (),
    headers: Mapping[str, str] = MappingProxyType({}),
    extension: Mapping[str, object] = MappingProxyType({}),
) -> Response:
    """The answer that carries a problem."""
    body: dict[str, object] = {
        "type": f"urn:warpfold:{kind}",
        "title": title,
        "status": status,
        "detail": detail,
        **extension,
    }
    if errors:
        body["errors"] = [error.model_dump() for error in errors]
    return Response(json.dumps(body, ensure_ascii=False), status, {**NOT_KEPT, **headers}, MEDIA_TYPE)
