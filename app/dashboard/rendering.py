"""Pages and parts of pages, rendered from templates. Everything that a user wrote is escaped."""

import gzip
import hashlib
import json
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache, cached_property
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape
from starlette.requests import Request
from starlette.responses import Response

from warpfold.app.auth.access_tokens import Principal
from warpfold.app.dashboard.assets import url_of
from warpfold.contract import wording

_HTML = "text/html; charset=utf-8"
_WORTH_COMPRESSING = 1024
_THEMES = ("light", "dark")

HEADERS = {
    # Scripts, styles and frames come from this server alone, never inline; no other site gets or sends anything.
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    # With "no-referrer" a browser would send `Origin: null` with our own forms.
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "private, no-cache",
    "Vary": "Cookie, Accept-Encoding",
}


def page(
    request: Request, template: str, status: int = 200, *, user: Principal | None = None, **model: Any
) -> Response:
    """A whole page. `model` has the template's variables beside `user`, `theme` and `path`."""
    theme = request.cookies.get("warpfold_theme")
    text = _render(
        template,
        user=user,
        theme=theme if theme in _THEMES else None,
        path=request.url.path,
        here=request.url.path + (f"?{request.url.query}" if request.url.query else ""),
        **model,
    )
    return Rendered(text.encode()).response(request, status)


@dataclass(frozen=True)
class Rendered:
    """A page, or a part of a page, ready to be sent to all who poll for it."""

    content: bytes
    etag: str | None = None

    @cached_property
    def compressed(self) -> bytes:
        return gzip.compress(self.content, 4, mtime=0)

    def response(self, request: Request, status: int = 200) -> Response:
        """The answer. It is compressed where the browser takes that and it saves something."""
        headers = {**HEADERS, **({"ETag": self.etag} if self.etag else {})}
        content = self.content
        if len(content) >= _WORTH_COMPRESSING and "gzip" in request.headers.get("accept-encoding", ""):
            content = self.compressed
            headers["Content-Encoding"] = "gzip"
        return Response(content, status, headers, _HTML)


def part(template: str, *, etag: str | None = None, **model: Any) -> Rendered:
    """A part of a page, which htmx puts into its place. A part that is polled for has the `etag` of its data."""
    return Rendered(_render(template, etag=etag, **model).encode(), etag)


def etag(*values: object) -> str:
    """A strong tag for a part that shows `values`; values that differ must differ in their `repr`. New templates give a
    new tag."""
    stamp = repr((_looks(), values))
    return f'"{hashlib.sha256(stamp.encode()).hexdigest()[:24]}"'


def unchanged(tag: str) -> Response:
    """304: the part that the browser shows is still current."""
    return Response(status_code=304, headers={"ETag": tag, "Cache-Control": HEADERS["Cache-Control"]})


def _render(template: str, **model: Any) -> str:
    return _templates().get_template(f"dashboard/{template}.html.jinja").render(**model)


@cache
def _templates() -> Environment:
    templates = Environment(
        loader=PackageLoader("warpfold.app"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    templates.globals["asset"] = url_of
    templates.filters.update(
        bytes=wording.size,
        part_of=wording.part_of,
        coded=coded,
        count=wording.count,
        iso=_iso,
        ms=wording.duration,
        json=_pretty,
        number=wording.number,
    )
    return templates


def _iso(moment: datetime) -> str:
    """A moment in UTC, as HTML's `datetime` attribute has it."""
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def coded(text: str) -> Markup:
    """`text` as HTML, in which words between backticks are code."""
    return Markup(re.sub(r"`([^`]+)`", r"<code>\1</code>", str(escape(text))))  # noqa: S704 - escaped before


def _pretty(value: object) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False)


@cache
def _looks() -> str:
    """A digest of all templates: a part that another version rendered is never current."""
    loader = _templates().loader
    assert loader is not None
    names = sorted(name for name in loader.list_templates() if name.startswith("dashboard/"))
    sources = "".join(loader.get_source(_templates(), name)[0] for name in names)
    return hashlib.sha256(sources.encode()).hexdigest()
