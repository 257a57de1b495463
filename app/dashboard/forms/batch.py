"""A form for a new batch that was sent: what was typed, and the same as the body of `POST /v1/batches`.

The specs are JSON lines, as a file has them, or a sweep, as the api takes it. `read_batch` reads a form whole; it may
run in another process. It checks no spec, because the acceptance of the batch does that. The typed texts are passed on
unchanged, so that no number loses digits.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from warpfold.app.dashboard.forms.submission import typed_in
from warpfold.app.http.errors import FieldProblem
from warpfold.contract.batches import MAX_JOBS

_SPEC_OF = "specs["


@dataclass(frozen=True, slots=True)
class SentBatch:
    """The texts that were typed. Where they are wrong, `body` is None and `problems` say why. `lines` are the numbers
    of the lines that the specs stand on, from 1; empty for a sweep."""

    name: str
    tags: str
    specs: str
    nonce: str
    body: bytes | None
    lines: Sequence[int]
    problems: tuple[FieldProblem, ...]

    def typed(self, problem: FieldProblem) -> FieldProblem:
        """A problem of the body in terms of the form: that of a spec names its line."""
        if not self.lines or not problem.field.startswith(_SPEC_OF):
            return problem
        number, _, field = problem.field.removeprefix(_SPEC_OF).partition("]")
        return FieldProblem(field=f"line {self.lines[int(number)]}", message=f"{field.lstrip('.')}: {problem.message}")


def read_batch(form: bytes) -> SentBatch:
    """The batch in the body of a form. Raises BadRequest for a form of too many fields."""
    texts = typed_in(form)
    name, tags, nonce = (texts.get(field, [""])[0].strip() for field in ("name", "tags", "nonce"))
    specs = texts.get("specs", [""])[0].rstrip()
    problems: list[FieldProblem] = []
    numbered: Sequence[tuple[int, str]] = ()
    if _is_sweep(specs):
        content = f'"sweep": {specs}'
    else:
        numbered = _lines(specs, problems)
        content = f'"specs": [{", ".join(line for _, line in numbered)}]'
        if not numbered and not problems:
            problems.append(FieldProblem(field="specs", message="write a spec a line, or a sweep"))
    options = json.dumps({"name": name, "tags": _tags(tags, problems)})
    body = None if problems else f"{options[:-1]}, {content}}}".encode()
    return SentBatch(name, tags, specs, nonce, body, [number for number, _ in numbered], tuple(problems))


def _is_sweep(text: str) -> bool:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return False
    return isinstance(value, dict) and "over" in value


def _lines(text: str, problems: list[FieldProblem]) -> Sequence[tuple[int, str]]:
    """The lines that are not empty, each with its number, up to the first that is not JSON."""
    specs: list[tuple[int, str]] = []
    for number, line in enumerate(text.split("\n"), 1):  # a string of JSON may have other ends of lines in it
        if not line.strip():
            continue
        if len(specs) == MAX_JOBS:
            problems.append(FieldProblem(field="specs", message=f"a batch has at most {MAX_JOBS} specs"))
            break
        try:
            json.loads(line)
        except (ValueError, RecursionError) as error:
            where = f"{error.msg} at character {error.pos + 1}" if isinstance(error, json.JSONDecodeError) else error
            problems.append(FieldProblem(field=f"line {number}", message=f"is not JSON that can be read: {where}"))
            break
        specs.append((number, line))
    return specs


def _tags(text: str, problems: list[FieldProblem]) -> Mapping[str, str]:
    tags = {}
    for pair in filter(None, map(str.strip, text.replace(",", "\n").splitlines())):
        name, equals, value = pair.partition("=")
        if not equals:
            problems.append(FieldProblem(field="tags", message=f"{pair!r} should be name=value"))
        tags[name.strip()] = value.strip()
    return tags
