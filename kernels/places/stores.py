"""Object stores by obstore: it signs requests with any kind of credentials, and lists what is in a bucket.

Bytes are not read by it: its client follows redirects to any host, and connects to any address.
"""

import re
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from time import monotonic
from typing import Any
from urllib.parse import quote

from warpfold.kernels.errors import InvalidInput, Unavailable
from warpfold.kernels.machine.extras import required
from warpfold.kernels.places.place import WEB, Place, Target

_SIGNED_FOR = timedelta(hours=1)
_RENEWED_AFTER_S = 600.0
_PAGE = 1000
_CODE = re.compile(r"<Code>([A-Za-z]{1,64})</Code>")
EXPIRED = frozenset({"ExpiredToken", "ExpiredTokenException", "TokenRefreshRequired", "RequestExpired"})
"""How stores call credentials that served once."""

_ENDPOINTS = {"s3": "https://s3.{region}.amazonaws.com", "gs": "https://storage.googleapis.com"}


class Signer:
    """Makes requests for the objects of one place: the URL, and the headers with credentials."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self._store: Any = None
        self._signed: dict[str, tuple[str, float]] = {}

    def request(self, target: Target) -> tuple[str, dict[str, str]]:
        """The URL and the headers that read the object. Raises Unavailable where the credentials do not serve."""
        place = self._place
        if place.scheme in WEB:
            return target.url, dict(place.secrets)
        plain = f"{endpoint(place)}/{place.bucket}/{quote(target.key)}"
        if place.anonymous:
            return plain, {}
        if "sas_key" in place.secrets:
            return f"{plain}?{place.secrets['sas_key'].lstrip('?')}", {}
        if "bearer_token" in place.secrets:
            return plain, {"Authorization": f"Bearer {place.secrets['bearer_token']}"}
        signed, since = self._signed.get(target.key, ("", 0.0))
        if not signed or monotonic() - since > _RENEWED_AFTER_S:
            with _redacted("its request cannot be signed"):
                signed = str(required("obstore", "places").sign(self.store(), "GET", target.key, _SIGNED_FOR))
            if len(self._signed) >= _PAGE:
                self._signed.clear()
            self._signed[target.key] = signed, monotonic()
        return signed, {}

    def store(self) -> Any:
        """The store as obstore has it. Raises Unavailable."""
        if self._store is None:
            stores, place = required("obstore.store", "places"), self._place
            secrets = dict(place.secrets)
            client: dict[str, Any] = {"connect_timeout": "10s", "timeout": "30s"}
            client["allow_http"] = endpoint(place).startswith("http://")
            if place.ca_file:
                client["root_certificate"] = Path(place.ca_file).read_text()
            common: dict[str, Any] = {
                "client_options": client,
                "retry_config": {"max_retries": 4, "retry_timeout": timedelta(seconds=60)},
            }
            config: dict[str, Any] = {**secrets, "skip_signature": True} if place.anonymous else secrets
            with _redacted("its configuration does not serve"):
                if place.scheme == "s3":
                    config |= {"endpoint": endpoint(place), "region": place.region or "us-east-1"}
                    self._store = stores.S3Store(place.bucket, config=config, **common)
                elif place.scheme == "gs":
                    if place.endpoint:
                        config["base_url"] = place.endpoint
                    self._store = stores.GCSStore(place.bucket, config=config, **common)
                else:
                    config |= {"account_name": place.account, "endpoint": endpoint(place)}
                    self._store = stores.AzureStore(place.bucket, config=config, **common)
        return self._store


def endpoint(place: Place) -> str:
    """The server of a bucket, without a slash at its end."""
    if place.endpoint:
        return place.endpoint.rstrip("/")
    if place.scheme == "az":
        return f"https://{place.account}.blob.core.windows.net"
    return _ENDPOINTS[place.scheme].format(region=place.region or "us-east-1")


def keys_below(signer: Signer, folder: str) -> Iterator[str]:
    """The keys of all objects below a folder of a bucket, "" for all of it, by name. Raises InvalidInput and
    Unavailable."""
    obstore = required("obstore", "places")
    with _redacted("its objects cannot be listed"):
        for page in obstore.list(signer.store(), folder or None, chunk_size=_PAGE):
            for meta in page:
                yield str(meta["path"])


def folders_in(signer: Signer, folder: str) -> list[str]:
    """The names of the folders in a folder of a bucket. Raises InvalidInput and Unavailable."""
    obstore = required("obstore", "places")
    with _redacted("its objects cannot be listed"):
        listing = obstore.list_with_delimiter(signer.store(), folder or None)
    return sorted(str(prefix).rstrip("/").rpartition("/")[2] for prefix in listing["common_prefixes"])


class _redacted:  # noqa: N801 (it is used as a context manager)
    """Tell the errors of obstore without what they quote: a URL in it may carry a signature."""

    def __init__(self, what: str) -> None:
        self._what = what

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        if error is None or isinstance(error, (InvalidInput, Unavailable, GeneratorExit)):
            return
        written = _CODE.search(str(error))
        name = type(error).__name__ if written is None else written[1]
        if name in EXPIRED:
            raise Unavailable(f"{self._what}: this server's credentials have expired ({name})") from None
        if name in ("PermissionDeniedError", "UnauthenticatedError", "AccessDenied"):
            raise InvalidInput(f"{self._what} with the credentials of this server's configuration") from None
        if name in ("NotFoundError", "NoSuchBucket", "ContainerNotFound"):
            raise InvalidInput(f"{self._what}: the bucket is not there") from None
        raise Unavailable(f"{self._what} ({name})") from None
