"""All presets, as their files say, and the groups that their names form: `p05-task3` is every `p05-task3-…`."""

from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from types import MappingProxyType

import yaml

from warpfold.contract.presets.preset import Preset
from warpfold.kernels.errors import InvalidInput

_SUFFIX = ".yaml"


def names() -> tuple[str, ...]:
    """The names of all presets."""
    names_of_files = (entry.name for entry in (files(__package__) / "specs").iterdir() if entry.name.endswith(_SUFFIX))
    return tuple(sorted(name.removesuffix(_SUFFIX) for name in names_of_files))


@cache
def groups() -> Mapping[str, tuple[str, ...]]:
    """The names that stand for several presets: every beginning of names, up to a hyphen, that at least two share."""
    grouped: dict[str, tuple[str, ...]] = {}
    for name in names():
        parts = name.split("-")
        for length in range(1, len(parts)):
            group = "-".join(parts[:length])
            members = tuple(other for other in names() if other.startswith(f"{group}-"))
            if len(members) > 1 and group not in names():
                grouped[group] = members
    return MappingProxyType(grouped)


@cache
def preset_named(name: str) -> Preset:
    """The preset of this name. Raises InvalidInput for an unknown name."""
    if name not in names():
        raise InvalidInput(f"unknown preset {name[:64]!r}; known: {', '.join((*names(), *groups()))}", "preset")
    text = (files(__package__) / "specs" / f"{name}{_SUFFIX}").read_text(encoding="utf-8")
    return Preset.model_validate({"name": name, **yaml.safe_load(text)})


def members(name: str) -> tuple[Preset, ...]:
    """The presets that `name` stands for: itself, or those of the group. Raises InvalidInput for an unknown name."""
    return tuple(preset_named(member) for member in groups().get(name, (name,)))
