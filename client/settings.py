"""Finds the service that a client talks to, and the token: in options, the environment, the file of settings, the notes
of a service that `warpfold serve` runs in this folder, or the file of `warpfold login`. No other module of the client
reads the environment or files of settings."""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from warpfold.client.errors import NotConfigured
from warpfold.client.http import httpx
from warpfold.contract.settings_file import VARIABLE, settings_file

URL, TOKEN, DATA_DIR = "WARPFOLD_URL", "WARPFOLD_TOKEN", "WARPFOLD_DATA_DIR"  # names of variables
_DATABASE = ("WARPFOLD_DATABASE_URL", "WARPFOLD_DATABASE_URL_FILE")
_URL_NOTE, _TOKEN_NOTE, _DATABASE_NOTE = (
    "url",
    "token",
    "database_url",
)  # files that `warpfold serve` keeps in its data folder


@dataclass(frozen=True, slots=True)
class Target:
    """A service's address and a token for it; `origin` says where they were found."""

    url: str
    token: str
    origin: str


class Logins(BaseModel):
    """The file that `warpfold login` keeps: tokens by address, and the address used last."""

    url: str | None = None
    tokens: dict[str, str] = {}


@dataclass(frozen=True, slots=True)
class Surroundings:
    """Where to look."""

    environment: Mapping[str, str]
    config_file: Path
    folder: Path

    @classmethod
    def of_process(cls) -> "Surroundings":
        """This process's environment, this user's settings, the folder it was started in."""
        from platformdirs import user_config_path

        return cls(os.environ, user_config_path("warpfold") / "login.json", Path.cwd())

    @property
    def settings_file(self) -> Path | None:
        """The file of settings, which the service reads, too."""
        return settings_file(self.environment, self.folder, self.config_file.parent)

    def in_file(self) -> Mapping[str, Any]:
        """All settings of that file. Raises NotConfigured where the file cannot be read."""
        path = self.settings_file
        if path is None:
            return {}
        import tomllib

        try:
            return tomllib.loads(path.read_text())
        except (OSError, UnicodeError, tomllib.TOMLDecodeError) as error:
            raise NotConfigured(f"{path} cannot be read: {error}") from None

    @property
    def data_dir(self) -> Path:
        """Where `warpfold serve` keeps its notes when it is started here."""
        named = self.environment.get(DATA_DIR) or self.in_file().get("data_dir", ".warpfold")
        return self.folder / Path(str(named)).expanduser()

    @property
    def names_database(self) -> bool:
        """Whether a service has its database here: the settings name one, or `warpfold serve` noted one."""
        named = any(self.environment.get(name) for name in _DATABASE) or self.in_file().get("database_url")
        return bool(named) or (self.data_dir / _DATABASE_NOTE).is_file()


def use_settings_file(path: str) -> None:
    """Have this process, and those that it becomes or starts, read this file of settings."""
    os.environ[VARIABLE] = path


def sent_files_path() -> Path:
    """Where this user's memory of sent files is."""
    from platformdirs import user_cache_path

    return user_cache_path("warpfold") / "sent-files.json"


def find_target(url: str | None = None, token: str | None = None, where: Surroundings | None = None) -> Target:
    """The service to talk to: the one that the arguments name, or else the one that is found. A token is sent only to
    the address that it was kept for.

    Raises NotConfigured, which says what to do.
    """
    where = where or Surroundings.of_process()
    environment = where.environment
    url, token = url or environment.get(URL), _checked(token or environment.get(TOKEN))
    in_file = where.in_file()
    if not url and "url" in in_file:
        url, token = str(in_file["url"]), token or _checked(str(in_file.get("token", "")))
        if token:
            return Target(_address(url), token, str(where.settings_file))
    if url:
        url = _address(url)
        if token:
            return Target(url, token, "the command or the environment")
    for target in _kept(where):
        if not url or url == target.url:
            return Target(target.url, token or target.token, target.origin)
    if not url:
        raise NotConfigured(
            f"no service is known: run `warpfold login URL`, set {URL} and {TOKEN}, write `url` and `token` into "
            f"warpfold.toml, or start one here by `warpfold serve`{_mistyped(where)}"
        )
    raise NotConfigured(f"no token for {url} is known: run `warpfold login {url}`, or set {TOKEN}{_mistyped(where)}")


def _mistyped(where: Surroundings) -> str:
    """A sentence about variables, and keys of the file of settings, whose names are nearly right."""
    from difflib import get_close_matches

    prefix = "WARPFOLD_"
    wanted = [name.removeprefix(prefix) for name in (URL, TOKEN)]
    named = [(name, prefix, name.removeprefix(prefix)) for name in where.environment if name.startswith(prefix)]
    named += [(f"{key} in {where.settings_file}", "", key.upper()) for key in where.in_file()]
    lines = (
        f" ({name} means nothing: is {kept}{near[0] if kept else near[0].lower()} meant?)"
        for name, kept, bare in sorted(named)
        if bare not in wanted and (near := get_close_matches(bare, wanted, n=1, cutoff=0.65))
    )
    return "".join(lines)


def _kept(where: Surroundings) -> list[Target]:
    """The services that notes and files name, the first choice first: a service of this very folder, then logins."""
    targets = []
    served = [_read(where.data_dir / name) for name in (_URL_NOTE, _TOKEN_NOTE)]
    if all(served):
        targets.append(Target(_tidy(served[0]), served[1], str(where.data_dir)))
    logins = read_logins(where.config_file)
    latest_first = sorted(logins.tokens.items(), key=lambda login: login[0] != logins.url)
    return targets + [Target(url, token, str(where.config_file)) for url, token in latest_first]


def read_logins(path: Path) -> Logins:
    """The logins kept at `path`; none if there is no such file. Raises NotConfigured for a file that is damaged."""
    text = _read(path)
    try:
        return Logins.model_validate_json(text) if text else Logins()
    except ValidationError:
        raise NotConfigured(f"{path} is damaged: remove it, and log in again") from None


def keep_login(path: Path, url: str, token: str) -> None:
    """Add a login to those at `path`, readable by its owner alone."""
    logins = read_logins(path)
    _write(path, Logins(url=_tidy(url), tokens={**logins.tokens, _tidy(url): token}))


def replace_token(where: Surroundings, old: Target, token: str) -> Path | None:
    """Keep `token` where that of `old` was kept; None if it was kept nowhere (a variable cannot be changed)."""
    if read_logins(where.config_file).tokens.get(old.url) == old.token:
        keep_login(where.config_file, old.url, token)
        return where.config_file
    note = where.data_dir / _TOKEN_NOTE
    if _read(note) == old.token:
        new = note.with_suffix(".new")
        new.unlink(missing_ok=True)
        new.touch(mode=0o600)
        new.write_text(f"{token}\n")
        new.replace(note)
        return note
    return None


def forget_login(path: Path, url: str) -> bool:
    """Remove a login; returns whether there was one."""
    logins = read_logins(path)
    left = {known: token for known, token in logins.tokens.items() if known != _tidy(url)}
    _write(path, Logins(url=next(iter(left), None), tokens=left))
    return len(left) < len(logins.tokens)


def _write(path: Path, logins: Logins) -> None:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    new = path.with_suffix(".new")
    new.unlink(missing_ok=True)
    new.touch(mode=0o600)
    new.write_text(json.dumps(logins.model_dump(), indent=2) + "\n")
    new.replace(path)


def _read(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        return ""


def _address(url: str) -> str:
    tidy = _tidy(url)
    try:
        parsed = httpx.URL(tidy)
    except httpx.InvalidURL as error:
        raise NotConfigured(f"{tidy!r} is not an address: {error}") from None
    if parsed.scheme not in ("http", "https") or not parsed.host:
        raise NotConfigured(f"{tidy!r} is not an address, which begins with http:// or https:// and the name of a host")
    return tidy


def _checked(token: str | None) -> str | None:
    """The token without the line's end that a file has; a header can hold nothing but visible ASCII."""
    token = token and token.strip()
    if token and not (token.isascii() and token.isprintable()):
        raise NotConfigured("the token has characters that are not allowed in a token: copy it again")
    return token


def _tidy(url: str) -> str:
    return url.strip().rstrip("/")
