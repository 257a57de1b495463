"""HTTP of presets."""

from fastapi import APIRouter

from warpfold.app.http.bearer import User
from warpfold.app.http.errors import Invalid, NotFound
from warpfold.app.http.openapi import answers
from warpfold.app.presets.views import PresetLine, PresetList, PresetView
from warpfold.contract.presets import catalogue

router = APIRouter(prefix="/v1/presets", tags=["catalogue"])


@router.get("", summary="Presets", responses=answers())
async def show_presets(user: User) -> PresetList:
    """Every experiment of the documents, ready to be run: submit `{"kind": "preset", "preset": …}` with a name of
    these, or of a group."""
    presets = [catalogue.preset_named(name) for name in catalogue.names()]
    lines = [
        PresetLine(
            name=preset.name, title=preset.title, description=preset.description.strip(), jobs=len(preset.children)
        )
        for preset in presets
    ]
    return PresetList(items=lines, groups={name: list(members) for name, members in catalogue.groups().items()})


@router.get("/{name}", summary="One preset", responses=answers(NotFound, Invalid))
async def show_preset(name: str, user: User) -> PresetView:
    """A preset: its jobs as they would be submitted, and the published figures."""
    if name not in catalogue.names():
        raise NotFound(f"There is no preset {name[:64]!r}; `/v1/presets` lists them.")
    return PresetView.of(catalogue.preset_named(name))
