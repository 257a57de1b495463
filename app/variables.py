"""Faults of the variables of a process's environment, in sentences for people. `app.config` reads the variables."""

import re
from collections.abc import Iterable, Sequence
from difflib import get_close_matches

from pydantic import ValidationError
from pydantic_settings import SettingsError

PREFIX = "WARPFOLD_"

_OTHERS = ("URL", "TOKEN", "HOST", "PORT", "VERSION")  # belong to the client and to docker-compose.yml
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


def wrong_settings(error: ValidationError | SettingsError) -> list[str]:
    """A sentence for each variable whose value is wrong."""
    if isinstance(error, SettingsError):
        return [str(error)]
    faults = error.errors(include_url=False, include_input=False)
    return [f"{PREFIX}{'_'.join(map(str, fault['loc'])).upper()}: {fault['msg']}" for fault in faults]
