"""The dashboard's routes in one api process share the poll cache, the bundle of Vega, and the provider
where people sign in."""

from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends, Request

from warpfold.app.auth.oidc import Provider
from warpfold.app.dashboard.assets import VegaBundle
from warpfold.app.polls import PollCache

KEPT_S = 1.0


@dataclass(frozen=True, slots=True)
class Shared:
    """The shared parts, which `app.dashboard.install` makes once."""

    polls: PollCache
    vega: VegaBundle
    provider: Provider | None


async def shared_of(request: Request) -> Shared:
    """The shared parts of the app that serves `request`."""
    shared: Shared = request.app.state.dashboard
    return shared


Sharing = Annotated[Shared, Depends(shared_of)]
