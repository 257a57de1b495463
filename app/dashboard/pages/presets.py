"""The pages of presets: they show the experiments of the documents, and run them."""

from dataclasses import dataclass
from typing import Annotated

from fastapi import Form
from pydantic import ValidationError
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from warpfold.app.catalogue.presets import PresetView
from warpfold.app.dashboard.forms.reading import integer
from warpfold.app.dashboard.rendering import page
from warpfold.app.dashboard.routes import router as pages
from warpfold.app.dashboard.visitors import Visitor
from warpfold.app.http.context import Using
from warpfold.app.http.error_handlers import spec_problem
from warpfold.app.http.errors import NotFound
from warpfold.app.jobs import service
from warpfold.app.json_view import json_view_of
from warpfold.contract.jobs import summary_of
from warpfold.contract.kinds.preset import PresetSpec
from warpfold.contract.presets import catalogue
from warpfold.contract.presets.preset import Preset

router = pages()


@dataclass(frozen=True, slots=True)
class PresetJob:
    """A job of a preset."""

    name: str
    kind: str
    summary: str


@router.get("/presets")
async def show(request: Request, visitor: Visitor) -> Response:
    """Show all presets, and the groups that their names form."""
    presets = [catalogue.preset_named(name) for name in catalogue.names()]
    return page(request, "presets", user=visitor, presets=presets, groups=catalogue.groups())


@router.get("/presets/{name}")
async def show_one(name: str, request: Request, visitor: Visitor) -> Response:
    """Show a preset: its jobs, and the figures that the document published."""
    preset = _preset(name)
    jobs = [
        PresetJob(child.name, child.spec.kind, summary_of(child.spec.kind, child.spec.model_dump(mode="json")))
        for child in preset.children
    ]
    view = PresetView.of(preset)
    return page(
        request, "preset", user=visitor, preset=view, jobs=jobs, published=json_view_of("Published", view.published)
    )


@router.post("/presets/{name}/run")
async def run(
    name: str,
    visitor: Visitor,
    context: Using,
    backend: Annotated[str, Form(max_length=16)] = "",
    max_n: Annotated[str, Form(max_length=32)] = "",
) -> Response:
    """Submit a preset, or a group of them, and go to its job."""
    fields = {"kind": "preset", "preset": name, "backend": backend or None, "max_n": integer(max_n) if max_n else None}
    try:
        spec = PresetSpec.model_validate({key: value for key, value in fields.items() if value is not None})
    except ValidationError as error:
        raise spec_problem(error) from None
    job = await service.submit(context, visitor, spec, None)
    return RedirectResponse(f"/jobs/{job.id}", 303)


def _preset(name: str) -> Preset:
    if name not in catalogue.names():
        raise NotFound(f"There is no preset {name[:64]!r}.")
    return catalogue.preset_named(name)
