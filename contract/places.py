"""The administrator's file of places, TOML or JSON: which buckets and web servers jobs may read, and with which
credentials. Errors name the place and its field, and never a value."""

import base64
import json
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Self

from pydantic import ConfigDict, Field, ValidationError, field_validator, model_validator

from warpfold.contract.faults import first_fault
from warpfold.contract.frozen import Frozen
from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.places.place import STORES, WEB, Place, Places, split

_MOST_BYTES = 1 << 20
_NEEDED: Mapping[str, tuple[tuple[str, ...], ...]] = {
    "s3": (("access_key_id", "secret_access_key"),),
    "gs": (("service_account_key",), ("bearer_token",)),
    "az": (("account_key",), ("sas_token",)),
}
_OF_WEB = (("bearer_token",), ("username", "password"))
_NAMES = {"sas_token": "sas_key"}
"""Names of secrets that the library of the stores has other names for."""

_SECRETS = (
    *("access_key_id", "secret_access_key", "session_token", "service_account_key", "bearer_token"),
    *("account_key", "sas_token", "username", "password"),
)


class PlaceEntry(Frozen):
    """One place. A secret may be in the file, or in a file of its own, whose path `<secret>_file` has."""

    model_config = ConfigDict(hide_input_in_errors=True)

    url: str = Field(
        description="s3://bucket/, gs://bucket/, az://container/, https://host/ or http://host/, or below."
    )
    endpoint: str = Field("", description="The server of the bucket, where it is not the provider's own.")
    region: str = ""
    account: str = Field("", description="The storage account, for Azure.")
    private: bool = Field(False, description="Whether its server may have a private or local address.")
    anonymous: bool = Field(False, description="Whether it is read without credentials.")
    ambient: bool = Field(False, description="Whether a bucket's credentials are those of this machine.")
    ca_file: Path | None = Field(None, description="Certificates (PEM) to trust besides the system's.")
    access_key_id: str = ""
    access_key_id_file: Path | None = None
    secret_access_key: str = ""
    secret_access_key_file: Path | None = None
    session_token: str = ""
    session_token_file: Path | None = None
    service_account_key: str = ""
    service_account_key_file: Path | None = None
    bearer_token: str = ""
    bearer_token_file: Path | None = None
    account_key: str = ""
    account_key_file: Path | None = None
    sas_token: str = ""
    sas_token_file: Path | None = None
    username: str = ""
    username_file: Path | None = None
    password: str = ""
    password_file: Path | None = None

    @field_validator("url")
    @classmethod
    def _whole(cls, url: str) -> str:
        scheme, authority, path = split(url, None)
        return f"{scheme}://{authority}/{path.strip('/')}/" if path.strip("/") else f"{scheme}://{authority}/"

    @field_validator("endpoint")
    @classmethod
    def _of_the_web(cls, endpoint: str) -> str:
        if endpoint and split(endpoint.rstrip("/"), None)[0] not in WEB:
            raise InvalidInput("an endpoint begins with https:// or http://")
        return endpoint.rstrip("/")

    @model_validator(mode="after")
    def _fits(self) -> Self:
        scheme = self.url.partition("://")[0]
        written = {name for name in _SECRETS if getattr(self, name) or getattr(self, f"{name}_file")}
        ways = _NEEDED.get(scheme, _OF_WEB)
        known = {name for needed_names in ways for name in needed_names} | (
            {"session_token"} if scheme == "s3" else set()
        )
        if written - known:
            raise InvalidInput(f"{sorted(written - known)[0]} is not for {scheme}")
        complete = any(set(needed_names) <= written for needed_names in ways)
        if scheme in STORES and complete + self.anonymous + self.ambient != 1:
            needed = " or ".join(" and ".join(needed_names) for needed_names in ways)
            raise InvalidInput(f"a bucket needs {needed}, or else anonymous = true, or ambient = true")
        if scheme in WEB and (self.ambient or self.endpoint or self.region or (written and not complete)):
            raise InvalidInput("a web server has a bearer_token, or a username and a password, or none of them")
        if scheme == "az" and not self.account:
            raise InvalidInput("a place of az:// needs an `account`")
        return self

    def place(self, folder: Path) -> Place:
        """The place; files of secrets lie below `folder` unless their paths are absolute. Raises OSError."""
        values = {name: self._secret(name, folder) for name in _SECRETS}
        secrets = {_NAMES.get(name, name): value for name, value in values.items() if value}
        if self.url.partition("://")[0] in WEB and secrets:
            basic = base64.b64encode(f"{values['username']}:{values['password']}".encode()).decode()
            token = values["bearer_token"]
            secrets = {"Authorization": f"Bearer {token}" if token else f"Basic {basic}"}
        ca_file = "" if self.ca_file is None else str((folder / self.ca_file).resolve())
        return Place(self.url, self.endpoint, self.region, self.account, self.private, self.anonymous, ca_file, secrets)

    def _secret(self, name: str, folder: Path) -> str:
        path: Path | None = getattr(self, f"{name}_file")
        written: str = getattr(self, name)
        return written if path is None else (folder / path).read_text().strip()


class _File(Frozen):
    model_config = ConfigDict(hide_input_in_errors=True)

    place: tuple[PlaceEntry, ...] = ()


def places_in(path: Path) -> Places:
    """The places that a file lists: TOML with tables `[[place]]`, or JSON with a list `place` if the file's name ends
    in .json. Raises ValueError, whose sentence repeats nothing of the file but names of fields."""
    try:
        text = path.read_bytes()
        if len(text) > _MOST_BYTES:
            raise ValueError(f"the file of places has more than {_MOST_BYTES:,} bytes")
        written = json.loads(text) if path.suffix == ".json" else tomllib.loads(text.decode())
        entries = _File.model_validate(written).place
        return Places(tuple(entry.place(path.parent) for entry in entries))
    except OSError as error:
        raise ValueError(f"the file of places, or one that it names, cannot be read: {error.strerror}") from None
    except ValidationError as error:
        fault = first_fault(error)
        raise ValueError(f"the file of places: {fault.field}: {fault}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, json.JSONDecodeError) as error:
        kind = "JSON" if path.suffix == ".json" else "TOML"
        line = getattr(error, "lineno", None)
        raise ValueError(f"the file of places is not {kind}" + (f", at line {line}" if line else "")) from None
