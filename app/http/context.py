"""The context of one api process, which `app.main.create_app` makes once."""

from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends, Request

from warpfold.app.auth.access import Access
from warpfold.app.auth.access_tokens import Principal
from warpfold.app.auth.visibility import Viewer
from warpfold.app.charts.renderer import ChartRenderer
from warpfold.app.config import Settings
from warpfold.app.db import Database
from warpfold.app.fairness.rates import Failures
from warpfold.app.http.heavy_answers import HeavyAnswers
from warpfold.app.http.large_bodies import LargeBodies
from warpfold.app.inspection.inspections import Inspections
from warpfold.app.metrics.metrics import Metrics
from warpfold.app.notifications import Notifications
from warpfold.app.polls import PollCache
from warpfold.app.tracing.tracing import Tracing

QUEUE_KEPT_S = 0.25
"""For how long a look at the queue serves all requests. A poll that read the queue would cost many times what it costs
without, and a place of a quarter of a second ago is still true."""


@dataclass(frozen=True, slots=True)
class Context:
    """The parts of an api process that endpoints use. `queue` keeps the latest look at the queue for
    `app.jobs.placing`."""

    settings: Settings
    database: Database
    notifications: Notifications
    access: Access
    failures: Failures
    large_bodies: LargeBodies
    heavy_answers: HeavyAnswers
    inspections: Inspections
    metrics: Metrics
    chart_renderer: ChartRenderer
    tracing: Tracing
    queue: PollCache

    def viewer(self, user: Principal) -> Viewer:
        """The user, as one who wants to see something."""
        return Viewer.of(user, self.settings)


async def context_of(request: Request) -> Context:
    """The context of the app that serves `request`."""
    context: Context = request.app.state.context
    return context


Using = Annotated[Context, Depends(context_of)]
