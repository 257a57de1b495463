"""HTTP of presets: the experiments of the documents, which can be submitted by name."""

from typing import Any

from fastapi import APIRouter
from pydantic import BaseModel, Field

from warpfold.app.http.bearer import User
from warpfold.app.http.errors import Invalid, NotFound
from warpfold.app.http.openapi import answers
from warpfold.contract.presets import catalogue
from warpfold.contract.presets.preset import Document, Preset, PresetChild
from warpfold.contract.presets.published import excerpt, source_of

router = APIRouter(prefix="/v1/presets", tags=["catalogue"])


class PresetView(BaseModel):
    """A preset: a study as a list of jobs, and the published figures that its results are compared with."""

    name: str
    title: str
    description: str
    document: Document
    source: str = Field(description="Title of the document.")
    children: list[PresetChild] = Field(description="Jobs of the preset. Each `spec` can also be submitted by itself.")
    published: dict[str, Any] = Field(description="Figures that the document published, by table.")

    @classmethod
    def of(cls, preset: Preset) -> "PresetView":
        return cls(
            name=preset.name,
            title=preset.title,
            description=preset.description.strip(),
            document=preset.document,
            source=source_of(preset.document),
            children=list(preset.children),
            published=excerpt(preset.document, preset.published),
        )


class PresetLine(BaseModel):
    """A preset in a list."""

    name: str
    title: str
    description: str
    jobs: int


class PresetList(BaseModel):
    """All presets, and the groups of presets."""

    items: list[PresetLine]
    groups: dict[str, list[str]] = Field(description="Presets of each group. A group can be submitted like a preset.")


@router.get("", summary="List presets", responses=answers())
async def show_presets(user: User) -> PresetList:
    """List all presets. To run one, submit `{"kind": "preset", "preset": …}` with the name of a preset or of a
    group."""
    presets = [catalogue.preset_named(name) for name in catalogue.names()]
    lines = [
        PresetLine(
            name=preset.name, title=preset.title, description=preset.description.strip(), jobs=len(preset.children)
        )
        for preset in presets
    ]
    return PresetList(items=lines, groups={name: list(members) for name, members in catalogue.groups().items()})


@router.get("/{name}", summary="Show a preset", responses=answers(NotFound, Invalid))
async def show_preset(name: str, user: User) -> PresetView:
    """Show a preset: its jobs as they would be submitted, and the published figures."""
    if name not in catalogue.names():
        raise NotFound(f"There is no preset {name[:64]!r}; `/v1/presets` lists them.")
    return PresetView.of(catalogue.preset_named(name))
