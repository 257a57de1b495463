"""What the dashboard's routes share in one api process."""

from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends, Request

from warpfold.app.dashboard.recent import Recent
from warpfold.app.dashboard.vega import VegaBundle


@dataclass(frozen=True, slots=True)
class Shared:
    """Made once by `app.dashboard.install`."""

    recent: Recent
    vega: VegaBundle


async def shared_of(request: Request) -> Shared:
    """That of the app that serves `request`."""
    shared: Shared = request.app.state.dashboard
    return shared


Sharing = Annotated[Shared, Depends(shared_of)]
