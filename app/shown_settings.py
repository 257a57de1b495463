"""`python -m warpfold.app.shown_settings` prints a line of JSON for each setting: its name, its value, and where the
value comes from. `warpfold settings` shows the lines."""

import json
import re

from warpfold.app.config import Settings, load_settings, origins

_PASSWORD = re.compile(r"(?<=://)([^/@\s]*):[^/@\s]*@")
MASK = "***"


def main() -> None:
    """Print all settings. A wrong one ends the process, as it ends every other."""
    settings = load_settings()
    values = settings.model_dump(mode="json")
    for name, origin in origins().items():
        line = {"setting": name, "value": _without_secrets(name, values[name]), "origin": origin}
        print(json.dumps(line, ensure_ascii=False))


def _without_secrets(name: str, value: object) -> object:
    """The value with a mask for a secret, and for the password of each address."""
    if isinstance(value, list):
        return [_without_secrets(name, each) for each in value]
    if not isinstance(value, str) or not value:
        return value
    return _PASSWORD.sub(rf"\1:{MASK}@", value) if Settings.model_fields[name].repr else MASK


if __name__ == "__main__":
    main()
