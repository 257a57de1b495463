"""Where settings come from: variables, files of secrets, and the file of settings; and what is wrong with them, in
sentences for people. `app.config` hands over the variables and names the files, because it alone reads the environment.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from tomllib import TOMLDecodeError
from typing import Any

from pydantic import ValidationError
from pydantic.fields import FieldInfo
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsError, TomlConfigSettingsSource

from warpfold.contract.settings_file import OF_CLIENTS, unknown_key

PREFIX = "WARPFOLD_"

_OTHERS = ("URL", "TOKEN", "CONFIG", "HOST", "PORT", "VERSION")  # belong to clients, the file and Compose
_OF_KUBERNETES = re.compile(
    r"(^|_)(SERVICE_(HOST|PORT)\w*|PORT(_\d+_\w+)?)$"
)  # belong to a Kubernetes service called warpfold


class FilesOfSecrets(PydanticBaseSettingsSource):
    """Reads values from the files that `WARPFOLD_<NAME>_FILE` names: thus no environment and no log shows a secret."""

    def __init__(self, settings_cls: type[BaseSettings], environment: Mapping[str, str]) -> None:
        super().__init__(settings_cls)
        self._environment = environment

    def get_field_value(self, field: FieldInfo, field_name: str) -> tuple[str | None, str, bool]:
        variable = f"{PREFIX}{field_name.upper()}_FILE"
        path = self._environment.get(variable)
        if not path:
            return None, field_name, False
        try:
            return Path(path).read_text().strip(), field_name, False
        except (OSError, UnicodeError) as error:
            raise SettingsError(f"{variable} names a file that cannot be read: {error}") from None

    def __call__(self) -> dict[str, str]:
        values = (
            (name, self.get_field_value(field, name)[0]) for name, field in self.settings_cls.model_fields.items()
        )
        return {name: value for name, value in values if value is not None}


class FileOfSettings(TomlConfigSettingsSource):
    """Reads the file of settings. A key that is no setting is an error, because nobody would miss what it should do."""

    def __init__(self, settings_cls: type[BaseSettings], path: Path | None) -> None:
        if path is not None and not path.exists():
            raise SettingsError(f"{path} cannot be read: there is no such file")
        super().__init__(settings_cls, path)
        known = [*settings_cls.model_fields, *OF_CLIENTS]
        unknown = [f"{path}: {unknown_key(key, known)}" for key in self.toml_data if key not in known]
        if unknown:
            raise SettingsError("\n".join(unknown))

    def _read_file(self, file_path: Any) -> dict[str, Any]:
        try:
            return super()._read_file(file_path)
        except (OSError, UnicodeError, TOMLDecodeError) as error:
            raise SettingsError(f"{file_path} cannot be read: {error}") from None


def origin_of(name: str, environment: Mapping[str, str], file: FileOfSettings, path: Path | None) -> str:
    """Where the value of a setting comes from: the name of a variable, the path of a file, or "default"."""
    variable = f"{PREFIX}{name.upper()}"
    if variable in map(str.upper, environment):
        return variable
    if environment.get(f"{variable}_FILE"):
        return f"{variable}_FILE"
    return str(path) if name in file.toml_data else "default"


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
