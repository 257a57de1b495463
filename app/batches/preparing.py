"""The specs of a batch become rows of jobs: of a large batch in the process for large bodies, a few hundred at a time.

So neither a batch of ten thousand nor a sweep that comes to as many holds up the event loop or another user's large
body, and the api never holds more of a batch than the text of its rows.
"""

import gc
import json
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Self
from uuid import UUID

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler, ValidationError, model_validator
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, core_schema, from_json, to_json

from warpfold.app.auth.access_tokens import Principal
from warpfold.app.config import Settings
from warpfold.app.http.error_handlers import as_api_error, spec_problem
from warpfold.app.http.errors import ApiError, BadRequest, FieldProblem, Invalid, TooLarge
from warpfold.app.http.requests import MOST_FIELDS
from warpfold.app.jobs import accept
from warpfold.app.jobs.inputs import inputs_of
from warpfold.app.jobs.store import Job
from warpfold.app.tables.jobs import NONE
from warpfold.contract.batches import MAX_JOBS, BatchOptions, BatchSpec, Sweep, check_one
from warpfold.contract.jobs import JobSpec, job_spec
from warpfold.contract.json_text import read_json
from warpfold.contract.states import PRIORITIES
from warpfold.contract.webhook import Webhook
from warpfold.kernels.errors import InvalidInput

_AT_A_TIME = 500
_BYTES_AT_A_TIME = 512 << 10
_HIGH = PRIORITIES["high"]
_NUMBER = re.compile(r"^specs\.(\d+)")
_ROW = ("kind", "priority", "needs", "small", "timeout_s", "tags")


@dataclass(frozen=True, slots=True)
class UnreadBatch:
    """The body of a request, to be read in the process apart. In the OpenAPI document it is a `BatchSpec`."""

    body: bytes

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.is_instance_schema(cls)

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        # Within a list of one, the document names `BatchSpec`; a bare name would be replaced by all that it stands for.
        return {"allOf": [handler(BatchSpec.__pydantic_core_schema__)]}


class _Unchecked(BatchOptions):
    """A `BatchSpec` whose specs are not checked yet."""

    specs: list[Any] | None = None
    sweep: Sweep | None = None

    @model_validator(mode="after")
    def _has_specs_or_sweep(self) -> Self:
        check_one(self.specs, self.sweep)
        if self.specs is not None and not 0 < len(self.specs) <= MAX_JOBS:
            raise InvalidInput(f"there are {len(self.specs)} specs; a batch has 1 to {MAX_JOBS}", "specs")
        return self


@dataclass(frozen=True, slots=True)
class UncheckedSpecs:
    """Unchecked specs from number `first` on, as the JSON text of a list."""

    first: int
    text: bytes

    def unchecked(self) -> Iterator[tuple[int, Any]]:
        """Each spec with its number."""
        yield from enumerate(from_json(self.text), self.first)

    def problem(self, number: int, problem: FieldProblem) -> FieldProblem:
        """A fault of a spec, in terms of the request."""
        return FieldProblem(field=f"specs[{number}].{problem.field}".rstrip("."), message=problem.message)


@dataclass(frozen=True, slots=True)
class SweptSpecs:
    """The combinations of a sweep from number `first` up to and without `last`."""

    sweep: Sweep
    first: int
    last: int

    def unchecked(self) -> Iterator[tuple[int, Any]]:
        """Each spec with its number."""
        for number, places in enumerate(self.sweep.points(self.first, self.last), self.first):
            yield number, self.sweep.at(places)

    def problem(self, number: int, problem: FieldProblem) -> FieldProblem:
        """A fault of a spec, in terms of the request: the value that is swept, or the field of the spec beside the
        values that go with it."""
        [places] = self.sweep.points(number, number + 1)
        for path, place in places.items():
            if f"{problem.field}.".startswith(f"{path}."):
                rest = problem.field.removeprefix(path)
                return FieldProblem(field=f"sweep.over.{path}[{place}]{rest}", message=problem.message)
            if path.startswith(f"{problem.field}.") and path.partition(".")[0] not in self.sweep.spec:
                return FieldProblem(field=f"sweep.over.{path}", message=problem.message)
        swept = ", ".join(f"{path} = {_short(self.sweep.over[path][place])}" for path, place in places.items())
        return FieldProblem(
            field=f"sweep.spec.{problem.field}".rstrip("."), message=f"{problem.message} (with {swept})"
        )


Piece = UncheckedSpecs | SweptSpecs


@dataclass(frozen=True, slots=True)
class Opened:
    """A request whose specs are not checked yet: what holds for all jobs, and the specs in pieces."""

    options: BatchOptions
    count: int
    pieces: Sequence[Piece]


@dataclass(frozen=True, slots=True)
class WebhookOf:
    """The webhook of a job, and the field of the request that it stands in."""

    job_id: str
    field: str
    webhook: Webhook


@dataclass(slots=True)
class Portion:
    """Some jobs of a batch, checked and ready to be stored.

    `rows` is a JSON list of objects with the columns of the jobs and of their children, in their order, and `ids` the
    JSON of the ids of the jobs with commas between. `places` is how many will wait in the queue, and `high` how many of
    them ask for the priority `high`. `tagged` says whether any of them has a tag or a name to be found by. `datasets`
    are the uploaded arrays that they need and `results` the jobs whose stored results they read, by the field that
    names each; `uploads` are those that they read before they have ended.
    """

    rows: str = ""
    ids: str = ""
    places: int = 0
    high: int = 0
    stored: int = 0
    tagged: bool = False
    datasets: dict[str, str] = field(default_factory=dict)
    results: dict[UUID, str] = field(default_factory=dict)
    uploads: frozenset[str] = frozenset()
    webhooks: list[WebhookOf] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Origin:
    """The owner of the jobs, and the ids of their request that the jobs carry."""

    owner: Principal
    request_id: str | None
    traceparent: str | None


@contextmanager
def _no_garbage() -> Iterator[None]:
    """Pauses the garbage collector: nothing made in the block forms a cycle, and collections would take longer than the
    work."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


@_no_garbage()
def opened(body: bytes, settings: Settings) -> Opened:
    """The request in `body`, cut into pieces. Raises ApiError."""
    try:
        value = read_json(body)
    except InvalidInput as error:  # of a name that is written twice
        raise Invalid.of(_NUMBER.sub(r"specs[\1]", error.field or ""), str(error)) from None
    except ValueError as error:
        raise BadRequest(f"The body is not JSON: {error}.") from None
    if isinstance(value, dict):
        _check_fields(to_json({name: inner for name, inner in value.items() if name != "specs"}), "A batch")
    try:
        unchecked = _Unchecked.model_validate(value)
        accept.check_receiver(unchecked.webhook, settings)
    except ValidationError as error:
        raise spec_problem(error) from None
    except InvalidInput as error:
        raise as_api_error(error) from None
    options = BatchOptions(**{name: getattr(unchecked, name) for name in BatchOptions.model_fields})
    if unchecked.sweep is not None:
        return Opened(options, unchecked.sweep.count, list(_swept(unchecked.sweep, settings.max_batch_bytes)))
    assert unchecked.specs is not None
    return Opened(options, len(unchecked.specs), list(_in_portions(unchecked.specs)))


def _check_fields(text: bytes, what: str) -> None:
    """Refuse far too many fields, counted by their colons: each that is unknown becomes an error of its own."""
    if text.count(b":") > MOST_FIELDS:
        raise TooLarge(f"{what} may have at most {MOST_FIELDS} fields.")


def _in_portions(specs: Sequence[Any]) -> Iterator[UncheckedSpecs]:
    first, texts, length = 0, [], 0
    for number, spec in enumerate(specs, 1):
        texts.append(to_json(spec))
        _check_fields(texts[-1], f"specs[{number - 1}]")
        length += len(texts[-1])
        if len(texts) == _AT_A_TIME or length >= _BYTES_AT_A_TIME or number == len(specs):
            yield UncheckedSpecs(first, b"[" + b",".join(texts) + b"]")
            first, texts, length = number, [], 0


def _swept(sweep: Sweep, most_bytes: int) -> Iterator[SweptSpecs]:
    largest = len(to_json(sweep.spec))
    largest += sum(len(path) + max(len(to_json(value)) for value in values) for path, values in sweep.over.items())
    if largest * sweep.count > most_bytes:
        detail = (
            f"{sweep.count} specs of up to {largest} bytes are more than the {most_bytes} bytes that a batch may have"
        )
        raise Invalid.of("sweep", f"{detail}; upload many values as a dataset, or generate them")
    step = max(1, min(_AT_A_TIME, _BYTES_AT_A_TIME // largest))
    for first in range(0, sweep.count, step):
        yield SweptSpecs(sweep, first, min(first + step, sweep.count))


@_no_garbage()
def prepared(piece: Piece, options: BatchOptions, origin: Origin, settings: Settings) -> Portion:
    """Check the specs of a piece and make rows of them. Raises Invalid, or another ApiError, for the first spec that is
    wrong."""
    portion = Portion()
    rows: list[str] = []
    ids: list[str] = []
    folders = settings.folders()
    for number, spec in piece.unchecked():
        try:
            checked = _checked(spec, options, settings, origin.owner)
        except ApiError as error:
            problems = error.errors or (FieldProblem(field="", message=str(error.detail)),)
            raise Invalid.at([piece.problem(number, problem) for problem in problems]) from None
        files = folders if accept.reads_files(checked) else None
        job = accept.job_of(checked, origin.owner, origin.request_id, origin.traceparent, folders=files)
        children = accept.children_of(checked, job, origin.owner)
        ids.append(f'"{job.id}"')
        rows.append(_row(job, number))
        rows.extend(_row(child, None) for child in children)
        if len(rows) > MAX_JOBS:
            raise too_many_jobs()
        portion.tagged = portion.tagged or bool(job.tags or children)
        for waiting in children or (job,):
            portion.places += 1
            portion.high += waiting.priority == _HIGH and waiting.needs != NONE
        inputs = inputs_of(checked)
        portion.uploads |= inputs.uploads
        for dataset, named in inputs.datasets.items():
            portion.datasets.setdefault(dataset, _named_in(piece, number, named))
        for other, named in inputs.jobs.items():
            portion.results.setdefault(other, _named_in(piece, number, named))
        if checked.webhook is not None:
            place = _named_in(piece, number, "webhook.secret")
            portion.webhooks.append(WebhookOf(str(job.id), place, checked.webhook))
    portion.rows, portion.ids, portion.stored = f"[{', '.join(rows)}]", ", ".join(ids), len(rows)
    return portion


def _named_in(piece: Piece, number: int, name: str) -> str:
    """The field of the request that has the field `name` of a spec."""
    return piece.problem(number, FieldProblem(field=name, message="")).field


def too_many_jobs() -> Invalid:
    """The answer to presets that come to more jobs than a batch may have."""
    return Invalid.of("specs", f"the jobs and the jobs of their presets are more than {MAX_JOBS}")


def _checked(spec: Any, options: BatchOptions, settings: Settings, owner: Principal) -> JobSpec:
    if not isinstance(spec, dict):
        raise Invalid.of("", "Input should be an object")
    accept.check_lengths(spec, settings.max_values)
    try:
        checked: JobSpec = job_spec.validate_python(options.onto(spec))
        accept.check(checked, settings)
        accept.check_uploads(checked, settings, owner)
    except ValidationError as error:
        raise spec_problem(error) from None
    except InvalidInput as error:
        raise as_api_error(error) from None
    return checked


def _row(job: Job, number: int | None) -> str:
    row: dict[str, object] = {"id": job.id, "batch_index": number, **{name: getattr(job, name) for name in _ROW}}
    if job.parent_id is not None:
        row |= {"parent_id": job.parent_id, "name": job.name}
    if job.work is not None:
        row["work"] = job.work
    # The specs are JSON already, and must stay as they are: −0.0 and integers of any size.
    brief = "" if job.spec_brief is None else f', "spec_brief": {job.spec_brief}'
    return f'{to_json(row)[:-1].decode()}, "spec": {job.spec}{brief}}}'


def _short(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 40 else f"{text[:40]}…"
