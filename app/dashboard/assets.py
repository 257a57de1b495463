"""The style sheet and the scripts. Their names follow their content, and browsers keep them for a year.

htmx comes from the package that carries it, Vega-Embed from a bundle that vl-convert makes once and that is kept on
disk. Neither server nor browser fetches anything from elsewhere.

`python -m warpfold.app.dashboard.assets` prints the bundle. The api runs that as a process, because making the bundle
takes seconds during which vl-convert lets nothing else in its process run.
"""

import asyncio
import gzip
import hashlib
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from tempfile import NamedTemporaryFile
from types import MappingProxyType

from starlette.requests import Request
from starlette.responses import Response

_FOREVER = "public, max-age=31536000, immutable"
_CSS, _JS, _SVG = "text/css; charset=utf-8", "text/javascript; charset=utf-8", "image/svg+xml"

VEGA = "vega.js"
"""The bundle of Vega, Vega-Lite and Vega-Embed, which is made on first use: see `VegaBundle`."""


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
        """The file, compressed where the browser takes that."""
        headers = {"Cache-Control": _FOREVER, "Vary": "Accept-Encoding", "X-Content-Type-Options": "nosniff"}
        if "gzip" not in request.headers.get("accept-encoding", ""):
            return Response(self.content, 200, headers, self.media_type)
        return Response(self.compressed, 200, {**headers, "Content-Encoding": "gzip"}, self.media_type)


@cache
def assets() -> Mapping[str, Asset]:
    """All assets but the bundle of Vega, by name."""
    ours = files("warpfold.app") / "static"
    sources: dict[str, tuple[str, Traversable]] = {
        "dashboard.css": (_CSS, ours / "dashboard.css"),
        "dashboard.js": (_JS, ours / "dashboard.js"),
        "forms.js": (_JS, ours / "forms.js"),
        "uploads.js": (_JS, ours / "uploads.js"),
        "charts.js": (_JS, ours / "charts.js"),
        "icon.svg": (_SVG, ours / "icon.svg"),
        "htmx.js": (_JS, files("js_lib_htmx") / "static/htmx/htmx.min.js"),
    }
    return MappingProxyType({name: Asset.of(kind, source.read_bytes()) for name, (kind, source) in sources.items()})


@cache
def url_of(name: str) -> str:
    """The address of an asset, which changes with its content."""
    mark = f"vl-convert-{version('vl-convert-python')}" if name == VEGA else assets()[name].digest
    return f"/assets/{mark}/{name}"


# Charts are drawn with `ast: true`: Vega then interprets its expressions, and the page's policy forbids `eval`.
_SNIPPET = "window.vegaEmbed = vegaEmbed;"


class VegaBundle:
    """The script that draws charts in browsers, kept in `directory` under its version."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._making = asyncio.Lock()
        self._asset: Asset | None = None

    async def asset(self) -> Asset:
        """The script, ready to be served. Raises OSError if it can be neither read nor made."""
        async with self._making:
            if self._asset is None:
                path = self._directory / f"vega-{version('vl-convert-python')}.js"
                if not path.is_file():
                    await self._make(path)
                self._asset = await asyncio.to_thread(lambda: Asset.of(_JS, path.read_bytes()))
        return self._asset

    async def _make(self, path: Path) -> None:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-P", "-m", "warpfold.app.dashboard.assets", stdout=asyncio.subprocess.PIPE
        )
        script, _ = await process.communicate()
        if process.returncode != 0:
            raise OSError(f"the bundle of Vega could not be made: exit code {process.returncode}")
        await asyncio.to_thread(_keep, path, script)


def _keep(path: Path, script: bytes) -> None:
    """Write in one step, so that two processes never see half of it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with NamedTemporaryFile(dir=path.parent, delete=False) as file:
        file.write(script)
    Path(file.name).replace(path)


def main() -> None:
    """Print the bundle."""
    import vl_convert

    sys.stdout.write(vl_convert.javascript_bundle(_SNIPPET))


if __name__ == "__main__":
    main()
