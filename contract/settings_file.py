"""Finds the file of settings, `warpfold.toml`, which the service and its clients share."""

from collections.abc import Iterable, Mapping
from pathlib import Path

NAME = "warpfold.toml"
VARIABLE = "WARPFOLD_CONFIG"
"""The variable that names another file."""

OF_CLIENTS = ("url", "token")
"""The keys that clients alone read. They read `data_dir`, too, which is a setting of the service."""


def settings_file(environment: Mapping[str, str], *folders: Path) -> Path | None:
    """The file that `WARPFOLD_CONFIG` names, whether or not it is there; or else the first that is there, of `folders`:
    the working directory, and this user's folder of settings."""
    named = environment.get(VARIABLE)
    if named:
        return Path(named).expanduser().absolute()
    return next((folder / NAME for folder in folders if (folder / NAME).is_file()), None)


def unknown_key(key: str, known: Iterable[str]) -> str:
    """A sentence about a key that is no setting, with the nearest that is one."""
    from difflib import get_close_matches

    near = get_close_matches(key, list(known), n=1)
    return f"{key} is no setting" + (f"; is {near[0]} meant?" if near else "")
