"""A preset: named jobs, and the source of the published figures that the jobs' figures are compared with."""

from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from warpfold.contract.frozen import Frozen
from warpfold.contract.tasks import TaskSpec

MAX_CHILDREN = 200

Document = Literal["p05", "p34"]
"""The document of `contract/presets/published` with the published figures: the course report, or the cluster
puzzles."""


class PresetChild(Frozen):
    """A job of a preset, with its name in the preset."""

    name: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_.:/-]{1,128}$")]
    spec: TaskSpec


class Preset(Frozen):
    """A study as a list of jobs. A file of `contract/presets/specs` holds one, under its name."""

    name: str
    title: str
    document: Document
    description: str
    published: tuple[str, ...] = Field(
        description="The parts of the document that the preset's figures are compared with."
    )
    children: tuple[PresetChild, ...] = Field(min_length=1, max_length=MAX_CHILDREN)
