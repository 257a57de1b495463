"""Types of settings whose text has a form of its own: urls, addresses, a secret, lists, and the file of places."""

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator
from pydantic_settings import NoDecode

from warpfold.contract.places import places_in

_HTTP = re.compile(r"https?://[^\s/?#@]+")
_SECRET = re.compile(r"[!-~]{32,}")
_ISSUER = re.compile(r"https://[^\s?#@]+|http://(localhost|127\.0\.0\.1|\[::1\])(:\d+)?(/[^\s?#@]*)?")
_SCHEDULER = re.compile(r"(tcp|tls|ucx|ws|wss)://[^\s/]+:\d+")


def _beginning(*schemes: str) -> AfterValidator:
    """Checks that a url begins with one of `schemes`, or is empty."""

    def check(url: str) -> str:
        if url and not url.startswith(schemes):
            raise ValueError(f"must begin with {' or '.join(schemes)}")
        return url

    return AfterValidator(check)


def _check_scheduler(address: str) -> str:
    if address and not _SCHEDULER.fullmatch(address):
        raise ValueError("must be the address of a Dask scheduler, as tcp://host:8786 or tls://host:8786")
    return address


def _check_secret(secret: str) -> str:
    if secret and not _SECRET.fullmatch(secret):
        raise ValueError("must have 32 characters of ASCII or more, and no space")
    return secret


def _check_issuer(url: str) -> str:
    if url and not _ISSUER.fullmatch(url):
        raise ValueError("must be the https:// URL of a provider; http:// may only name this machine")
    return url


def _split_roles(roles: object) -> object:
    if not isinstance(roles, str):
        return roles
    pairs = [pair.rpartition("=") for pair in roles.split(",") if pair.strip()]
    return {group.strip(): role.strip() for group, _, role in pairs}


def _split_urls(urls: object) -> object:
    listed = urls.split() if isinstance(urls, str) else urls
    if not isinstance(listed, list | tuple):
        return listed
    tidy = tuple(str(url).rstrip("/") for url in listed)
    if wrong := [url for url in tidy if not _HTTP.fullmatch(url)]:
        raise ValueError(f"must be URLs of apis, such as http://host:8080; {wrong[0]!r} is not such a URL")
    return tidy


def _split_folders(folders: object) -> object:
    listed = folders.split(os.pathsep) if isinstance(folders, str) else folders
    if not isinstance(listed, list | tuple):
        return listed
    return tuple(Path(str(part)).expanduser().resolve() for part in listed if part)


def _check_places(path: Path | None) -> Path | None:
    if path is None or path == Path():  # an empty variable
        return None
    places_in(path.expanduser())  # so that a start fails over it, and no job
    return path.expanduser().resolve()


PostgresUrl = Annotated[str, _beginning("postgresql://", "postgres://", "postgresql+psycopg://")]
"""The url of a Postgres, or nothing."""
RedisUrl = Annotated[str, _beginning("redis://", "rediss://", "unix://")]
"""The url of a Redis or Valkey, or nothing."""
SchedulerAddress = Annotated[str, AfterValidator(_check_scheduler)]
"""The address of a Dask scheduler, or nothing."""
IssuerUrl = Annotated[str, AfterValidator(_check_issuer)]
"""The URL of a provider of OpenID Connect, or nothing."""
RolesOfGroups = Annotated[Mapping[str, Literal["admin", "user", "viewer"]], NoDecode, BeforeValidator(_split_roles)]
"""Roles by the names of groups, which a text has as `group=role, group=role`; or a mapping."""
SharedSecret = Annotated[str, AfterValidator(_check_secret)]
"""A secret of 32 printable characters or more, or nothing."""
ListOfUrls = Annotated[tuple[str, ...], NoDecode, BeforeValidator(_split_urls)]
"""Urls of apis, which a text separates by spaces; or a list of them."""
ListOfFolders = Annotated[tuple[Path, ...], NoDecode, BeforeValidator(_split_folders)]
"""Folders as absolute paths, which a text separates as PATH does; or a list of them."""
FileOfPlaces = Annotated[Path | None, AfterValidator(_check_places)]
"""The absolute path of a file of places that can be read, or None."""
