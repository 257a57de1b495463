"""A form for a new job that was sent: what was typed, the spec that this comes to, and the same submission in curl and
in Python.

`read_submission` does all that takes long, from the bytes of the body to the validated spec. It may run in another
process.
"""

import hashlib
import json
import pprint
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl

from pydantic import ValidationError

from warpfold.app.dashboard.forms.fields import Form, Shape
from warpfold.app.dashboard.forms.reading import APART, form_for, spec_of, typed_from
from warpfold.app.http.error_handlers import spec_problem
from warpfold.app.http.errors import BadRequest, FieldProblem, Invalid
from warpfold.app.http.large_bodies import LARGE_BYTES
from warpfold.contract.jobs import JobSpec, job_spec

MOST_FIELDS = 1000
"""Fields in a form, as Starlette allows in forms that it parses. A body has room for a million of them."""
_MOST_SHOWN = 6000
"""Elements of a list in curl and Python. The page cuts these texts after as many characters."""

Typed = dict[str, list[str]]


@dataclass(frozen=True, slots=True)
class SentForm:
    """The texts that were typed into a form. Where they are wrong, `spec` is None and `problems` say why. `digest` is
    the digest of the spec's JSON. `curl` and `python` submit the same spec to the api."""

    typed: Typed
    form: Form
    spec: JobSpec | None
    problems: tuple[FieldProblem, ...]
    digest: bytes
    curl: str
    python: str

    @property
    def wrong(self) -> Invalid | None:
        """The error that `problems` make."""
        return Invalid.at(self.problems) if self.problems else None

    @property
    def large(self) -> bool:
        """Whether a page with all typed texts takes long to render."""
        return sum(len(text) for texts in self.typed.values() for text in texts) > LARGE_BYTES


def read_submission(body: bytes, address: str, max_values: int) -> SentForm:
    """The submission in the body of a form. `address` is the url of the api; a list of numbers may have at most
    `max_values` elements. Raises BadRequest for a form of too many fields."""
    return submission_of(typed_in(body), address, max_values)


def submission_from(stored: str, address: str, max_values: int) -> SentForm:
    """The submission that repeats a job, whose spec is stored as this JSON text."""
    return submission_of(typed_from(json.loads(stored)), address, max_values)


def submission_of(typed: Typed, address: str, max_values: int) -> SentForm:
    """The submission that the texts `typed` make."""
    form = form_in(typed)
    problems = _too_many_values(form, typed, max_values)
    # Reading a million values one by one would take seconds.
    skipped = {problem.field for problem in problems}
    spec = spec_of(form, {name: texts for name, texts in typed.items() if name not in skipped})
    text = json.dumps(spec)
    valid: JobSpec | None = None
    if not problems:
        try:
            valid = job_spec.validate_json(text)
        except ValidationError as error:
            problems = spec_problem(error).errors
    shown = _shortened(spec)
    digest = hashlib.sha256(text.encode()).digest()
    return SentForm(typed, form, valid, problems, digest, curl_of(address, shown), python_of(address, shown))


def typed_in(body: bytes) -> Typed:
    """The texts of each field of a form, in the order in which they came. Raises BadRequest for too many fields."""
    try:
        sent = parse_qsl(body.decode("latin-1"), keep_blank_values=True, max_num_fields=MOST_FIELDS)
    except ValueError:
        raise BadRequest(f"A form may have at most {MOST_FIELDS} fields.") from None
    typed: Typed = {}
    for name, text in sent:
        typed.setdefault(name, []).append(text)
    return typed


def form_in(typed: Typed) -> Form:
    """The form that `typed` belongs to."""
    return form_for(typed.get("kind", [""])[0], typed)


def _too_many_values(form: Form, typed: Typed, max_values: int) -> tuple[FieldProblem, ...]:
    """The fields of numbers that hold more than `max_values` of them."""
    problems = []
    for field in form.flat():
        if field.shape in (Shape.NUMBERS, Shape.INTEGERS) and field.name in typed:
            count = sum(1 for text in APART.split(typed[field.name][0]) if text)
            if count > max_values:
                message = f"{count} values are more than the {max_values} allowed"
                problems.append(FieldProblem(field=field.name, message=message))
    return tuple(problems)


def curl_of(address: str, spec: Mapping[str, Any]) -> str:
    """A command for a shell that has the token in WARPFOLD_TOKEN."""
    body = shlex.quote(json.dumps(spec, ensure_ascii=False))
    return (
        f"curl -s {address}/v1/jobs \\\n"
        '  -H "Authorization: Bearer $WARPFOLD_TOKEN" \\\n'
        "  -H 'Content-Type: application/json' -H 'Prefer: wait=30' \\\n"
        f"  -d {body}"
    )


def python_of(address: str, spec: Mapping[str, Any]) -> str:
    """A program on the project's own client, which takes the token from WARPFOLD_TOKEN."""
    shown = pprint.pformat(dict(spec), width=76, sort_dicts=False, compact=True)
    return (
        "from warpfold import Client\n\n"
        f"spec = {shown.replace(chr(10), chr(10) + '       ')}\n\n"
        f'with Client("{address}") as warpfold:\n'
        "    print(warpfold.submit(spec).get())"
    )


def _shortened(value: Any) -> Any:
    """`value` without the elements of lists that no page has room for."""
    if isinstance(value, dict):
        return {name: _shortened(inner) for name, inner in value.items()}
    return value[:_MOST_SHOWN] if isinstance(value, list) else value
