"""Turns the texts that were typed into a spec, and a spec into the texts that would be typed for it."""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from warpfold.app.dashboard.forms.fields import Field, Form, Group, Shape
from warpfold.app.dashboard.forms.schema import example_of, form_of, kinds
from warpfold.contract.json_text import read_json
from warpfold.kernels.sources.written import float_or_text

Typed = Mapping[str, Sequence[str]]
"""The texts of each input, by its dotted name."""

_WAS = "was."
"""Begins the names of inputs that say for which choice the fields of a group were made."""

_POWER = re.compile(r"(\d+)\s*(?:\^|\*\*)\s*(\d{1,3})")
_SCIENTIFIC = re.compile(r"(\d+)(?:\.(\d+))?[eE]\+?(\d{1,2})")
APART = re.compile(r"[\s,;]+")
"""The separators between the elements of a list."""


def form_for(kind: str, typed: Typed) -> Form:
    """The form of `kind` that suits the typed texts. An unknown kind gives the form of the first kind."""
    kind = kind if kind in kinds() else kinds()[0]
    return form_of(kind, {name: texts[0] for name, texts in typed.items() if texts})


def carried_over(kind: str, typed: Typed) -> dict[str, list[str]]:
    """The typed texts that stay when another object of a union is chosen: all but those of fields that now mean
    something else, as their help says. (The dtype of values is not that by which a table's text is read.)"""
    before = {name.removeprefix(_WAS): texts for name, texts in typed.items() if name.startswith(_WAS)}
    old = {field.name: field for field in form_for(kind, {**typed, **_tags(before)}).flat()}
    new = {field.name: field for field in form_for(kind, typed).flat()}
    strangers = {name for name in old.keys() & new.keys() if old[name].help != new[name].help}
    return {name: list(texts) for name, texts in typed.items() if name not in strangers}


def _tags(before: Typed) -> Typed:
    return {f"{group}.type": texts for group, texts in before.items()}


def spec_of(form: Form, typed: Typed) -> dict[str, Any]:
    """The spec as JSON values. A text that cannot be read as its type stays a text, so that the api names the fault.
    A field that is empty, or has its default, is left out."""
    spec: dict[str, Any] = {"kind": form.kind}
    for part in (*form.main, *form.more):
        _put(spec, part, typed)
    return spec


def typed_from(spec: Mapping[str, Any]) -> dict[str, list[str]]:
    """The texts that would be typed for `spec`."""
    flat = _flat(spec)
    named = {name: [value] for name, value in flat.items() if isinstance(value, str)}
    form = form_for(str(spec.get("kind")), named)
    texts = {field.name: _texts(field, flat[field.name]) for field in form.flat() if flat.get(field.name) is not None}
    return {"kind": [form.kind], **texts}


def blank(kind: str) -> dict[str, list[str]]:
    """The texts in a new form, which are those of the schema's example."""
    return typed_from({"kind": kind, **example_of(kind)})


def texts_in(field: Field, typed: Typed) -> Sequence[str]:
    """The texts in `field`: those that were typed, else its default."""
    if field.name in typed:
        return typed[field.name]
    return [] if field.default is None else _texts(field, field.default)


def is_changed(field: Field, typed: Typed) -> bool:
    """Whether something was typed that differs from the default."""
    return _value(field, typed.get(field.name, ())) not in (None, field.default)


def _put(into: dict[str, Any], part: Field | Group, typed: Typed) -> None:
    last = part.name.rpartition(".")[2]
    if isinstance(part, Field):
        value = _value(part, typed.get(part.name, ()))
        if value is not None and (part.required or value != part.default):
            *_, before = ["", *part.name.split(".")[:-1]]
            target = into.setdefault("parameters", {}) if before == "parameters" else into
            target[last] = value
        return
    if part.rows:
        into[last] = [row for group in part.fields if (row := _row(group, typed))]
        return
    inner: dict[str, Any] = {}
    for field in (*part.fields, *part.more):
        _put(inner, field, typed)
    if inner or part.required:
        into[last] = inner


def _row(group: Field | Group, typed: Typed) -> dict[str, Any]:
    """An object of a list; empty where nothing but the op was chosen, which a new row has."""
    row: dict[str, Any] = {}
    _put(row, group, typed)
    [inner] = row.values() or [{}]
    return inner if inner.keys() - {"op"} else {}


def _value(field: Field, texts: Sequence[str]) -> Any:
    """The JSON value of the typed texts, or None if they are empty."""
    if field.shape is Shape.MANY or (field.shape is Shape.NAMES and len(texts) > 1):  # ticked among those offered
        return list(texts) or None
    if field.shape is Shape.FLAG:
        return texts[-1] == "on" if texts else None
    text = texts[0].strip() if texts else ""
    return _READ[field.shape](text) if text else None


def integer(text: str) -> int | str:
    """The integer that `text` is, in any form in which people write sizes: 1_000_000, 1e6, 10^6, 2**30. Any other text
    is returned unchanged."""
    text = text.strip().replace("_", "")
    if re.fullmatch(r"[+-]?\d{1,30}", text):
        return int(text)
    if power := _POWER.fullmatch(text):
        return int(pow(int(power[1][:20]), int(power[2])))
    if scientific := _SCIENTIFIC.fullmatch(text):
        decimals, exponent = scientific[2] or "", int(scientific[3])
        if len(decimals) <= exponent:
            return int(scientific[1] + decimals.ljust(exponent, "0"))
    return text


def _number(text: str) -> bool | int | float | str:
    if text in ("true", "false"):
        return text == "true"
    whole = integer(text)
    if isinstance(whole, int) and not re.search(r"[.eE]", text):
        return whole
    if not re.search(r"[.a-zA-Z]", text):  # an integer of so many digits that no dtype holds it
        return text
    try:
        return float_or_text(text)
    except ValueError:
        return text


def _names(text: str) -> Any:
    return _json(text) if text.startswith("[") else [name for name in map(str.strip, text.split(",")) if name]


def _pairs(text: str) -> dict[str, str]:
    lines = (line.strip() for line in text.splitlines())
    pairs = (line.partition("=") for line in lines if line)
    return {name.strip(): value.strip() for name, _, value in pairs}


def _json(text: str) -> Any:
    try:
        return read_json(text.encode())
    except ValueError:
        return text


_READ: Mapping[Shape, Callable[[str], Any]] = MappingProxyType(
    {
        Shape.CHOICE: str,
        Shape.TEXT: str,
        Shape.INTEGER: integer,
        Shape.NUMBER: _number,
        Shape.INTEGERS: lambda text: [integer(item) for item in APART.split(text) if item],
        Shape.NUMBERS: lambda text: [_number(item) for item in APART.split(text) if item],
        Shape.TEXTS: lambda text: [item for item in APART.split(text) if item],
        Shape.NAMES: _names,
        Shape.PAIRS: _pairs,
        Shape.EITHER: lambda text: {"true": True, "false": False}.get(text, text),
        Shape.JSON: _json,
    }
)
"""How the text in a field of a shape is read; that of MANY and FLAG is not one text."""


def _texts(field: Field, value: Any) -> list[str]:
    """The texts that are typed into `field` for `value`."""
    match field.shape, value:
        case Shape.MANY, [*several]:
            return [str(element) for element in several]
        case Shape.FLAG, _:
            return ["on" if value else "off"]
        case Shape.PAIRS, dict():
            return ["\n".join(f"{name}={text}" for name, text in value.items())]
        case (Shape.JSON, _) | (Shape.NAMES, [{}, *_]):
            return [json.dumps(value)]
        case _, [*several]:
            return [", ".join(_element(element) for element in several)]
    return [_text(value)]


def _element(value: Any) -> str:
    """The text of an element of an array. The text of a float is read back as a float."""
    text = _text(value)
    return f"{text}.0" if isinstance(value, float) and re.fullmatch(r"-?\d+", text) else text


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and float(f"{value:g}") == value:
        return re.sub(r"e\+?(-?)0?", r"e\1", f"{value:g}")  # 1e8, not 1e+08
    return str(value)


def _flat(value: Mapping[str, Any], path: str = "") -> dict[str, Any]:
    """{"source": {"n": 3}} → {"source": {"n": 3}, "source.n": 3}."""
    values: dict[str, Any] = {}
    for name, inner in value.items():
        values[f"{path}{name}"] = inner
        if isinstance(inner, Mapping):
            values |= _flat(inner, f"{path}{name}.")
        if isinstance(inner, list) and any(isinstance(each, Mapping) for each in inner):
            values |= _flat({str(at): each for at, each in enumerate(inner)}, f"{path}{name}.")
    return values
