"""The places that jobs may read from, and which of them a URL names. Light, for it travels to the child of a slot."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import quote, unquote, urlsplit

from warpfold.kernels.errors import InvalidInput

STORES = ("s3", "gs", "az")
"""The schemes whose URLs name a bucket (Azure: a container) and a key."""

WEB = ("https", "http")
SCHEMES = (*STORES, *WEB)

MOST_LETTERS = 4096

_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")
_PORTS = {"https": 443, "http": 80}
_BUCKET = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,254}")
_SAFE = "/%:@!$&'()*+,;=~-._"
_WILD = re.compile(r"[*\[]")
NOT_OURS = "a URL with credentials is refused: they belong into the server's configuration, and never into a request"


@dataclass(frozen=True, slots=True)
class Place:
    """A bucket or a web server, or a folder of one, with what it takes to read there.

    `url` ends in a slash. `endpoint` is the server of a bucket, empty for the provider's own. `private` says that its
    server may have a private address. `ca_file` names certificates (PEM) that are trusted besides the system's. In
    `secrets` are the credentials, by the names that the library of the store has for them; of a web server, headers.
    """

    url: str
    endpoint: str = ""
    region: str = ""
    account: str = ""
    private: bool = False
    anonymous: bool = False
    ca_file: str = ""
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)

    @property
    def scheme(self) -> str:
        return self.url.partition("://")[0]

    @property
    def bucket(self) -> str:
        """The bucket or the container; of a web server, its host and port."""
        return self.url.partition("://")[2].partition("/")[0]


@dataclass(frozen=True, slots=True)
class Target:
    """An object as its URL names it: `key` is the name in its bucket, or the path on its server without the first
    slash, percent-encoded as in a URL."""

    place: Place
    url: str
    key: str

    def below(self, name: str) -> "Target":
        """The object that is called `name` below this one. Raises InvalidInput where the name leads elsewhere."""
        if _leads_elsewhere(name):
            raise InvalidInput(f"holds no {name[:200]!r}")
        written = quote(name, safe=_SAFE.replace("%", "")) if self.place.scheme in WEB else name
        joined = f"{self.key.rstrip('/')}/{written.strip('/')}"
        return Target(self.place, f"{self.url.rstrip('/')}/{written.strip('/')}", joined)


@dataclass(frozen=True, slots=True)
class ObjectMetadata:
    """An object that was read, or a folder of objects, which has no size, ETag and time: `size` and `bytes_read` are in
    bytes, `etag` and `modified` as the server writes them. `sha256` is None where nobody asked for it."""

    url: str
    size: int | None
    etag: str | None
    modified: str | None
    bytes_read: int
    sha256: str | None = None


def is_url(name: str) -> bool:
    """Whether the name of a file is a URL, and no path."""
    return _URL.match(name) is not None


@dataclass(frozen=True, slots=True)
class Places:
    """All places of a server's configuration."""

    listed: tuple[Place, ...] = ()

    def target(self, url: str, field: str, *, pattern: bool = False) -> Target:
        """The object that `url` names, or with `pattern` the objects. Raises InvalidInput naming `field` where `url` is
        not a URL, carries credentials, or names no place of this server; the message repeats nothing that may be a
        secret."""
        scheme, authority, path = split(url, field)
        if not self.listed:
            raise InvalidInput("this server reads no URLs: its administrator has allowed no places", field)
        if pattern and scheme in WEB and _WILD.search(path):
            raise InvalidInput("a web server does not list its files: name them in paths", field)
        return self._below(scheme, authority, path, field)

    def redirected(self, url: str, field: str | None = None) -> tuple[Target, str]:
        """The object to which a web server's answer leads, and its URL with the query that the server gave it. Raises
        InvalidInput where that is no place of this server."""
        if len(url) > 2 * MOST_LETTERS or not url.isascii() or not url.isprintable():
            raise InvalidInput("its server redirects to an address that is not a URL", field)
        whole, _, query = url.partition("#")[0].partition("?")
        try:
            scheme, authority, path = split(whole, field)
            if scheme not in WEB:
                raise InvalidInput("no web server", field)
            target = self._below(scheme, authority, path, field)
        except InvalidInput:
            raise InvalidInput(
                "its server redirects to an address outside of the places of this server", field
            ) from None
        return target, f"{target.url}?{query}" if query else target.url

    def _below(self, scheme: str, authority: str, path: str, field: str | None) -> Target:
        url = f"{scheme}://{authority}/{path}"
        fitting = [place for place in self.listed if url.startswith(place.url)]
        if not fitting:
            named = f"{scheme}://{authority}"
            raise InvalidInput(f"{named[:200]!r} is outside of the places that this server may read", field)
        return Target(max(fitting, key=lambda place: len(place.url)), url, path)


def split(url: str, field: str | None) -> tuple[str, str, str]:
    """Scheme, bucket or host with its port, and key of a URL, as places have them. Raises InvalidInput naming
    `field`."""
    match = _URL.match(url)
    if match is None or len(url) > MOST_LETTERS or "\\" in url or not url.isprintable():
        raise InvalidInput(f"is not a URL of at most {MOST_LETTERS:,} letters", field)
    scheme = match[1].lower()
    if scheme not in SCHEMES:
        raise InvalidInput(f"a URL begins with {', '.join(f'{name}://' for name in SCHEMES)}", field)
    authority, _, path = url[match.end() :].partition("/")
    if "@" in authority or "%" in authority:
        raise InvalidInput(NOT_OURS, field)
    if "#" in url or "?" in url:  # a pattern may not have them either, because "?" would look like a query
        raise InvalidInput(f"a URL has no query and no fragment; {NOT_OURS}", field)
    if _leads_elsewhere(unquote(path) if scheme in WEB else path):
        raise InvalidInput("'.' and '..' are not allowed in a URL, nor are two slashes within its path", field)
    if scheme in STORES:
        if not _BUCKET.fullmatch(authority):
            raise InvalidInput("a URL names its bucket: s3://bucket/name", field)
        return scheme, authority, path
    return scheme, _host(scheme, authority, field), quote(path, safe=_SAFE)


def _host(scheme: str, authority: str, field: str | None) -> str:
    try:
        parts = urlsplit(f"{scheme}://{authority}")
        host, port = (parts.hostname or "").rstrip(".").encode("idna").decode(), parts.port
    except (ValueError, UnicodeError):
        host, port = "", None
    if not host:
        raise InvalidInput("a URL names its host: https://host/name", field)
    named = f"[{host}]" if ":" in host else host
    return named if port in (None, _PORTS[scheme]) else f"{named}:{port}"


def _leads_elsewhere(path: str) -> bool:
    parts = path.split("/")
    return any(part in (".", "..") for part in parts) or "" in parts[:-1] or "\\" in path or "\x00" in path


NOWHERE = Places()
