"""The OpenAPI document: what FastAPI finds, with every error as a problem."""

import asyncio
import json
from collections.abc import Mapping, Set
from threading import Lock
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from warpfold.app.http.errors import MEDIA_TYPE, ApiError, Forbidden, Problem, Unauthorized, Unavailable

_REF = "#/components/schemas/{model}"
Responses = dict[int | str, dict[str, Any]]


def answers(*kinds: type[ApiError]) -> Responses:
    """The `responses` of a route that can meet `kinds` of problem, besides a missing token, a key that may not do it,
    and a lost database."""
    return _documented((Unauthorized, Forbidden, *kinds, Unavailable))


def open_answers(*kinds: type[ApiError]) -> Responses:
    """The `responses` of a route that needs no token."""
    return _documented(kinds)


def _documented(kinds: tuple[type[ApiError], ...]) -> Responses:
    return {
        kind.status: {
            "description": kind.title,
            "content": {MEDIA_TYPE: {"schema": {"$ref": _REF.format(model=Problem.__name__)}}},
        }
        for kind in kinds
    }


def install(app: FastAPI) -> None:
    """Give `app` its document, made on first use, and once where several threads ask for it."""
    made_by_one = Lock()

    def document() -> dict[str, Any]:
        with made_by_one:
            if app.openapi_schema is None:
                app.openapi_schema = _made_for(app)
            return app.openapi_schema

    app.openapi = document  # type: ignore[method-assign]


async def document_of(app: FastAPI) -> dict[str, Any]:
    """The document of `app`. It takes seconds to make, and a thread of its own leaves other requests their turn."""
    made = app.openapi_schema
    return await asyncio.to_thread(app.openapi) if made is None else made


async def text_of(app: FastAPI) -> bytes:
    """The same as JSON, which is written once and kept."""
    written: bytes | None = getattr(app.state, "document", None)
    if written is None:
        document = await document_of(app)
        written = app.state.document = await asyncio.to_thread(lambda: json.dumps(document).encode())
    return written


def _made_for(app: FastAPI) -> dict[str, Any]:
    made = get_openapi(
        title=app.title,
        version=app.version,
        summary=app.summary,
        description=app.description,
        routes=app.routes,
        tags=app.openapi_tags,
    )
    schema = Problem.model_json_schema(ref_template=_REF)
    schemas = made["components"]["schemas"]
    schemas |= schema.pop("$defs", {})
    schemas[Problem.__name__] = schema
    for name, each in schemas.items():  # whoever makes classes of them takes the title for the name
        if each.get("title") != name:
            each["title"] = name.replace("-", "")
    operations = [operation for methods in made["paths"].values() for operation in methods.values()]
    for operation in operations:
        for parameter in operation.get("parameters", ()):
            parameter["schema"] = _without_null(parameter["schema"])
    for name in _named_by([operation.get("requestBody") for operation in operations], schemas):
        for field in schemas[name].get("properties", {}).values():
            _put_default_in_words(field)
    return made


def _named_by(node: Any, schemas: Mapping[str, Any]) -> Set[str]:
    """The names of the `schemas` that a node of the document refers to, and that those refer to."""
    names: set[str] = set()
    nodes = [node]
    while nodes:
        node = nodes.pop()
        if isinstance(node, list):
            nodes += node
        elif isinstance(node, dict):
            name = str(node.get("$ref", "")).rpartition("/")[2]
            if name and name not in names:
                names.add(name)
                nodes.append(schemas[name])
            nodes += node.values()
    return names


def _put_default_in_words(field: dict[str, Any]) -> None:
    """Describe the default of a field of a request, and leave it out. Generators of clients take a field with a default
    for one that is always there, and demand it (TypeScript), or send the default of the day they were made (Python)."""
    default = field.pop("default", None)
    if default not in (None, "", [], {}):
        words = f"The default is `{default if isinstance(default, str) else json.dumps(default)}`."
        field["description"] = " ".join([field["description"], words]) if "description" in field else words


def _without_null(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema without null: a parameter may be left out, but a query or a header cannot carry null."""
    kinds = [kind for kind in schema.get("anyOf", ()) if kind != {"type": "null"}]
    if len(kinds) != 1:
        return schema
    return {**{key: value for key, value in schema.items() if key != "anyOf"}, **kinds[0]}
