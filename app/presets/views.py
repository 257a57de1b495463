"""What the api says of presets."""

from typing import Any

from pydantic import BaseModel, Field

from warpfold.contract.presets.preset import Document, Preset, PresetChild
from warpfold.contract.presets.published import excerpt, source_of


class PresetView(BaseModel):
    """A study as a list of jobs, with the published figures that it is compared with."""

    name: str
    title: str
    description: str
    document: Document
    source: str = Field(description="the document's title")
    children: list[PresetChild] = Field(description="its jobs; each `spec` can be submitted by itself, too")
    published: dict[str, Any] = Field(description="what the document says came out, by table")

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
    """All presets, and the names that stand for several of them."""

    items: list[PresetLine]
    groups: dict[str, list[str]] = Field(description="a group can be submitted like a preset")
