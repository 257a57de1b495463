"""Specs and numbers as people write them for the command line."""

import math
from typing import Any

import yaml


class _Loader(yaml.SafeLoader):
    """Reads YAML, which includes JSON. Floats that JSON has no numbers for stay text, which the service reads."""


def _real(loader: _Loader, node: yaml.ScalarNode) -> float | str:
    number = loader.construct_yaml_float(node)
    if math.isfinite(number):
        return number
    named = str(node.value).lower().lstrip("+-") in (".inf", ".nan")
    return str(number) if named else str(node.value)  # a number that is too large must not become an infinity


_Loader.add_constructor("tag:yaml.org,2002:float", _real)


def loaded(text: str) -> Any:
    return yaml.load(text, _Loader)  # noqa: S506 - it is a safe loader


def number(text: str) -> int | float | str:
    """A number, exactly; or, if JSON has no such number, the text (such as "nan" or a hex float), which the service
    reads."""
    for kind in (int, float):
        try:
            read = kind(text)
        except ValueError:
            continue
        if math.isfinite(read):  # JSON has no NaN and no infinity
            return read
    return text
