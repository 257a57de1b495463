"""The faults that Pydantic finds in a request, as errors of Warpfold."""

from pydantic import ValidationError

from warpfold.kernels.errors import InvalidInput


def first_fault(error: ValidationError) -> InvalidInput:
    """The first fault, with the field that it is about."""
    first = error.errors(include_url=False, include_input=False)[0]
    cause = first.get("ctx", {}).get("error")
    inner = cause.field if isinstance(cause, InvalidInput) else None
    field = ".".join([*map(str, first["loc"]), *([inner] if inner else [])])
    return InvalidInput(str(cause or first["msg"]), field or None)
