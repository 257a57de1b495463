"""Makes the form of a kind of job from the JSON schema of its spec."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

from warpfold.app.dashboard.forms.fields import Field, Form, Group, Shape
from warpfold.contract.fields import JobOptions
from warpfold.contract.jobs import KINDS, job_spec
from warpfold.kernels.generate import DISTRIBUTIONS
from warpfold.kernels.ops import OPS, Parameters
from warpfold.kernels.ops.weights import WITH_WEIGHTS

Schema = Mapping[str, Any]
Chosen = Mapping[str, str]
"""The present choices, by name, in the fields that decide which other fields the form has."""

# Fields of every kind, and those of measuring, of weights and of windows: most people leave them unchanged.
_MORE = frozenset(
    {
        *JobOptions.model_fields,
        *("seed", "target_rse", "min_samples", "max_samples", "nan_policy", "digits", "states", "fingerprint"),
        *("partitions", "max_groups", "min_count", "keepdims", "weights", "weighting", "window", "over", "keys"),
    }
)
_OF_FILES = frozenset({"array", "column", "name", "paths", "glob", "uploads"})
"""What people say of a file beside its name; how it is read they leave to the service."""
_OF_ROWS = frozenset({"op", "column", "name"})
"""What people say of an aggregation: it has the fields of a row."""
_INTERNAL = "upload"
"""A source that clients name for themselves: nobody chooses it."""


def kinds() -> tuple[str, ...]:
    """The kinds of job."""
    return KINDS


def example_of(kind: str) -> Mapping[str, Any]:
    """A spec of the kind that would be accepted, or an empty object if the schema has no example."""
    examples = _spec(kind).get("examples") or [{}]
    example: Mapping[str, Any] = examples[0]
    return example


def form_of(kind: str, chosen: Chosen) -> Form:
    """The form of `kind` with these choices."""
    schema = _spec(kind)
    required = schema.get("required", ())
    main: list[Field | Group] = []
    more: list[Field | Group] = []
    for name, inner in schema["properties"].items():
        if name == "kind" or not _applies(name, chosen):
            continue
        for field in _parts(name, inner, name in required, chosen):
            (more if name in _MORE else main).append(field)
    return Form(kind, schema.get("description", "").split("\n\n")[0], main, more)


def _applies(name: str, chosen: Chosen, within: str = "") -> bool:
    """Whether the form, or the object `within` it, has the field `name`; some fields belong to some ops only."""
    op = OPS.get(chosen.get(f"{within}op", ""))
    if op is not None and name == "other":
        return op.sources > 1
    if op is not None and name == "ddof":
        return op.ddof
    if op is not None and name in Parameters.names():
        return name in op.takes
    if op is not None and name in ("weights", "weighting"):
        return op.name in WITH_WEIGHTS
    return True


def _parts(name: str, schema: Schema, required: bool, chosen: Chosen) -> Sequence[Field | Group]:
    description = schema.get("description", "")
    schema = _resolved(schema)
    if "discriminator" in schema and not required and name not in ("source", "other"):  # a filter of rows, and its like
        return [Field(name, Shape.JSON, description)]
    if "discriminator" in schema:
        return [_variants(name, schema, required, chosen)]
    if schema.get("type") == "object" and "properties" in schema:
        return [_object(name, schema, required, chosen)]
    if name.rpartition(".")[2] == "parameters":
        return _parameters(name, chosen)
    if (
        schema.get("type") == "array"
        and (items := _resolved(schema.get("items", {}))).get("properties", {}).keys() >= _OF_ROWS
    ):
        return [_rows(name, items, chosen)]
    return [_field(name, schema, required)]


def _variants(name: str, schema: Schema, required: bool, chosen: Chosen) -> Group:
    """The fields of a union of objects: first its tag, then the fields of the object that the tag chooses."""
    tag = schema["discriminator"]["propertyName"]
    mapping = schema["discriminator"]["mapping"]
    required = required or name == "other"
    picked = chosen.get(f"{name}.{tag}", "")
    picked = picked if picked in mapping else next(iter(mapping)) if required else ""
    offered = tuple(option for option in mapping if option != _INTERNAL or option == picked)
    picker = Field(f"{name}.{tag}", Shape.CHOICE, options=offered, required=required, reshapes=True)
    if not picked:
        return Group(name, [picker], required=False)
    inner = _resolved({"$ref": mapping[picked]})
    file = bool({"column", "array"} & inner["properties"].keys())
    rest: list[Field | Group] = []
    more: list[Field | Group] = []
    for field, kind in inner["properties"].items():
        if field != tag:
            needed = field in inner.get("required", ())
            into = more if file and not needed and field not in _OF_FILES else rest
            into += _parts(f"{name}.{field}", kind, needed, chosen)
    return Group(name, [picker, *rest], more, required, file=file, picked=picked)


def _object(name: str, schema: Schema, required: bool, chosen: Chosen) -> Group:
    needed = schema.get("required", ())
    inner = [
        part
        for field, kind in schema["properties"].items()
        if _applies(field, chosen, f"{name}.")
        for part in _parts(f"{name}.{field}", kind, required and field in needed, chosen)
    ]
    return Group(name, inner, required=required)


def _rows(name: str, schema: Schema, chosen: Chosen) -> Group:
    """The objects of a list, of which each that has something typed is a row, and an empty one follows."""
    numbers = [int(at) for key, text in chosen.items() if text and (at := _row_of(key, name))]
    rows = []
    for number in range(max(numbers, default=-1) + 2):
        row = _object(f"{name}.{number}", schema, required=False, chosen=chosen)
        first = [part for part in row.fields if part.name.rpartition(".")[2] in _OF_ROWS]
        rows.append(replace(row, fields=first, more=[part for part in row.fields if part not in first]))
    return Group(name, rows, rows=True)


def _row_of(key: str, name: str) -> str:
    """The number of the row of the list `name` that the field `key` fills; empty for other fields, and for the op,
    which every row has."""
    rest = key.removeprefix(f"{name}.")
    number, _, field = rest.partition(".")
    return number if rest != key and number.isdecimal() and field not in ("", "op") else ""


def _parameters(name: str, chosen: Chosen) -> Sequence[Field]:
    """The fields of the parameters of the chosen distribution."""
    row = DISTRIBUTIONS.get(chosen.get(f"{name.removesuffix('parameters')}distribution", ""))
    if row is None:
        return []
    return [
        Field(
            f"{name}.{parameter.name}",
            Shape.NUMBER,
            f"{parameter.summary} (default {parameter.default:g})",
            default=None,
        )
        for parameter in row.parameters
    ]


def _field(name: str, schema: Schema, required: bool) -> Field:
    shape, options = _shape(schema)
    return Field(
        name=name,
        shape=shape,
        help=schema.get("description", ""),
        options=options,
        required=required,
        default=schema.get("default"),
        reshapes=name.rpartition(".")[2] in ("op", "distribution"),
    )


def _shape(schema: Schema) -> tuple[Shape, Sequence[str]]:
    if "enum" in schema:
        return Shape.CHOICE, tuple(schema["enum"])
    match schema.get("type"):
        case "array":
            items = _resolved(schema.get("items", {}))
            if "enum" in items:
                return Shape.MANY, tuple(items["enum"])
            members = (*items.get("anyOf", ()), *items.get("oneOf", ()))
            if any("$ref" in member for member in members):
                return (Shape.NAMES if {"type": "string"} in members else Shape.JSON), ()
            several = {"integer": Shape.INTEGERS, "string": Shape.TEXTS, "object": Shape.JSON}
            return several.get(items.get("type", ""), Shape.NUMBERS if "properties" not in items else Shape.JSON), ()
        case "object":
            texts = _resolved(schema.get("additionalProperties") or {}).get("type") == "string"
            return (Shape.PAIRS if texts or "patternProperties" in schema else Shape.JSON), ()
    # Nobody ticks what they leave to the service: a flag without a default has three answers.
    flag = Shape.EITHER if schema.get("default", False) is None else Shape.FLAG
    shapes = {"integer": Shape.INTEGER, "number": Shape.NUMBER, "boolean": flag, "string": Shape.TEXT}
    shape = shapes.get(schema.get("type", ""), Shape.JSON)
    return shape, ("true", "false") if shape is Shape.EITHER else ()


def _resolved(schema: Schema) -> Schema:
    """`schema` with its reference followed and without the null that makes it optional."""
    if "$ref" in schema:
        target = _document()["$defs"][schema["$ref"].rpartition("/")[2]]
        beside = {name: value for name, value in schema.items() if name != "$ref"}
        return _resolved({**target, **beside})
    kinds = [kind for kind in schema.get("anyOf", ()) if kind.get("type") != "null"]
    if len(kinds) == 1:
        beside = {name: value for name, value in schema.items() if name != "anyOf"}
        return _resolved({**kinds[0], **beside})
    return schema


def _spec(kind: str) -> Schema:
    return _resolved({"$ref": _document()["discriminator"]["mapping"][kind]})


@cache
def _document() -> Schema:
    return job_spec.json_schema()
