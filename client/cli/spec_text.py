"""Specs and numbers as people write them for the command line."""

import math
from contextlib import suppress
from typing import Any

import yaml

from warpfold.kernels.values import float_or_text

_MERGE = "tag:yaml.org,2002:merge"


class _Loader(yaml.SafeLoader):
    """Reads YAML, which includes JSON. Floats that JSON has no numbers for stay text, which the service reads, and so
    do those of which float64 would make an integer that they are not."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        """The mapping. Raises ConstructorError for a name that stands in it twice: one of the two would be lost."""
        names: set[str] = set()
        for key, _ in node.value:
            if key.tag != _MERGE and isinstance(key, yaml.ScalarNode):
                if key.value in names:
                    fault = f"{key.value!r} is written twice in one object"
                    raise yaml.constructor.ConstructorError(problem=fault, problem_mark=key.start_mark)
                names.add(key.value)
        return super().construct_mapping(node, deep)


def _real(loader: _Loader, node: yaml.ScalarNode) -> float | str:
    number = loader.construct_yaml_float(node)
    written = str(node.value).replace("_", "")
    if ":" in written and math.isfinite(number):  # minutes and seconds
        return number
    named = written.lower().lstrip("+-") in (".inf", ".nan")
    return str(number) if named else float_or_text(written)


_Loader.add_constructor("tag:yaml.org,2002:float", _real)


def loaded(text: str) -> Any:
    """The value of a text in YAML. Raises YAMLError."""
    return yaml.load(text, _Loader)  # noqa: S506 - it is a safe loader


def number(text: str) -> int | float | str:
    """A number, exactly; or the text, which the service reads, where JSON has no such number (such as "nan" or a hex
    float)."""
    for kind in (int, float_or_text):
        with suppress(ValueError):
            return kind(text)
    return text
