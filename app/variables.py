"""Faults of settings, in sentences for people. `app.config` reads the settings."""

import re
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches

from pydantic import ValidationError

PREFIX = "WARPFOLD_"

_OTHERS = ("URL", "TOKEN", "CONFIG", "HOST", "PORT", "VERSION")  # belong to clients, the file and Compose
_OF_KUBERNETES = re.compile(
    r"(^|_)(SERVICE_(HOST|PORT)\w*|PORT(_\d+_\w+)?)$"
)  # belong to a Kubernetes service called warpfold


def unknown_settings(variables: Iterable[str], settings: Sequence[str]) -> list[str]:
    """A sentence for each of the `variables` whose name looks like a setting and is not among `settings`, which come
    without their prefix."""
    known = [*settings, *_OTHERS]
    unknown = []
    for variable in sorted(variables):
        name = variable.upper().removeprefix(PREFIX)
        if not variable.upper().startswith(PREFIX) or name in known or _OF_KUBERNETES.search(name):
            continue
        near = get_close_matches(name, known, n=1)
        meant = f"; is {PREFIX}{near[0]} meant?" if near else ""
        unknown.append(f"{variable} is no setting, and has no effect{meant}")
    return unknown


def wrong_settings(error: ValidationError, origins: Mapping[str, str]) -> list[str]:
    """A sentence for each setting whose value is wrong, which names its variable, or its file and its key there."""
    sentences = []
    for fault in error.errors(include_url=False, include_input=False):
        name = str(fault["loc"][0])
        origin = origins.get(name, "default")
        named = f"{origin}: {name}" if not origin.startswith((PREFIX, "default")) else f"{PREFIX}{name.upper()}"
        sentences.append(f"{named}: {fault['msg']}")
    return sentences
