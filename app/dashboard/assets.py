"""Style sheet and scripts: named by their content, compressed once, kept by browsers for a year.

htmx is served from the package that carries it, Vega-Embed from the bundle that vl-convert makes; nothing is fetched
from elsewhere, by the server or by the browser.
"""

import gzip
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from importlib.resources import files
from importlib.resources.abc import Traversable
from types import MappingProxyType

from starlette.requests import Request
from starlette.responses import Response

_FOREVER = "public, max-age=31536000, immutable"
_CSS, _JS, _SVG = "text/css; charset=utf-8", "text/javascript; charset=utf-8", "image/svg+xml"

VEGA = "vega.js"
"""The bundle of Vega, Vega-Lite and Vega-Embed. It is made on first use: `app.dashboard.vega`."""


@dataclass(frozen=True, slots=True)
class Asset:
    """A file for browsers, as it is and compressed."""

    media_type: str
    content: bytes
    compressed: bytes
    digest: str

    @classmethod
    def of(cls, media_type: str, content: bytes) -> "Asset":
        digest = hashlib.sha256(content).hexdigest()[:16]
        return cls(media_type, content, gzip.compress(content, 9, mtime=0), digest)

    def response(self, request: Request) -> Response:
        """The file, compressed for whoever takes that."""
        headers = {"Cache-Control": _FOREVER, "Vary": "Accept-Encoding", "X-Content-Type-Options": "nosniff"}
        if "gzip" not in request.headers.get("accept-encoding", ""):
            return Response(self.content, 200, headers, self.media_type)
        return Response(self.compressed, 200, {**headers, "Content-Encoding": "gzip"}, self.media_type)


@cache
def assets() -> Mapping[str, Asset]:
    """All but the bundle of Vega, by name."""
    ours = files("warpfold.app") / "static"
    sources: dict[str, tuple[str, Traversable]] = {
        "dashboard.css": (_CSS, ours / "dashboard.css"),
        "dashboard.js": (_JS, ours / "dashboard.js"),
        "forms.js": (_JS, ours / "forms.js"),
        "charts.js": (_JS, ours / "charts.js"),
        "icon.svg": (_SVG, ours / "icon.svg"),
        "htmx.js": (_JS, files("js_lib_htmx") / "static/htmx/htmx.min.js"),
    }
    return MappingProxyType({name: Asset.of(kind, source.read_bytes()) for name, (kind, source) in sources.items()})


@cache
def url_of(name: str) -> str:
    """Where an asset is, under an address that changes with its content."""
    mark = f"vl-convert-{version('vl-convert-python')}" if name == VEGA else assets()[name].digest
    return f"/assets/{mark}/{name}"


def vega_asset(script: bytes) -> Asset:
    """The bundle as an asset."""
    return Asset.of(_JS, script)
