"""The columns or arrays of a file as choices of a form: after a look into the file, a list takes the place of a text
field."""

from collections.abc import Sequence
from dataclasses import replace

from pydantic import ValidationError

from warpfold.app.dashboard.forms.fields import Field, Form, Group, Shape
from warpfold.app.dashboard.forms.reading import Typed, spec_of
from warpfold.app.http.error_handlers import spec_problem
from warpfold.app.http.errors import ApiError, FieldProblem
from warpfold.app.sources import InspectRequest
from warpfold.contract.sources.inspection import Inspection
from warpfold.contract.text_fields import OF_TEXT
from warpfold.contract.wording import number_of

_NAMING = ("type", "path", "paths", "glob", "id", *OF_TEXT)
"""The fields of a source that say which file it reads, and how."""


def look_for(form: Form, typed: Typed, group: str) -> InspectRequest:
    """The look into the file that the fields of `group` name. Raises ApiError naming the fields at fault."""
    source = spec_of(form, typed).get(group, {})
    try:
        return InspectRequest.model_validate({"source": {name: source[name] for name in _NAMING if name in source}})
    except ValidationError as error:
        raise spec_problem(error) from None


def problems_of(error: ApiError, group: str) -> tuple[FieldProblem, ...]:
    """The faults of a look into a file, in terms of the fields of `group`."""
    problems = error.errors or (FieldProblem(field="source", message=str(error.detail)),)
    return tuple(
        FieldProblem(field=problem.field.replace("source", group, 1), message=problem.message) for problem in problems
    )


def offering(form: Form, group: str, inspection: Inspection, typed: Typed) -> Form:
    """The form whose fields for a column, or for an array, offer those that a job reduces, and whose field for keys
    offers all columns."""
    name = f"{group}.{'column' if inspection.holds == 'columns' else 'array'}"
    named = [content for content in inspection.contents if content.name]
    labels = {
        content.name: f"{content.name} ({', '.join(_described(content.reduced_as, content.shape, content.nulls))})"
        for content in named
        if content.reduced_as is not None
    }

    def offered(field: Field) -> Field:
        if field.shape is Shape.NAMES and group == "source":
            return replace(field, shape=Shape.MANY, options=[content.name for content in named])
        if field.name != name and not (field.name.endswith(".column") and field.name.startswith("aggregations.")):
            return field
        text = (typed.get(field.name) or [""])[0]
        known = labels if not text or text in labels else {**labels, text: f"{text} (not there)"}
        return replace(field, shape=Shape.CHOICE, options=list(known), labels=list(known.values()))

    def of(parts: Sequence[Field | Group]) -> list[Field | Group]:
        return [
            replace(part, fields=of(part.fields), more=of(part.more)) if isinstance(part, Group) else offered(part)
            for part in parts
        ]

    return replace(form, main=of(form.main), more=of(form.more))


def _described(dtype: str | None, shape: tuple[int, ...] | None, nulls: int | None) -> list[str]:
    words = [str(dtype)]
    if shape is not None:
        words.append(" × ".join(f"{length:,}" for length in shape))
    if nulls:
        words.append(number_of("null", nulls))
    return words
