"""The context of one api process, which `app.main.create_app` makes once."""

from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends, Request

from warpfold.app.auth.access import Access
from warpfold.app.charts.renderer import ChartRenderer
from warpfold.app.config import Settings
from warpfold.app.db import Database
from warpfold.app.fairness.rates import Failures
from warpfold.app.http.large_bodies import LargeBodies
from warpfold.app.inspection.inspections import Inspections
from warpfold.app.metrics.metrics import Metrics
from warpfold.app.notifications import Notifications
from warpfold.app.tracing.tracing import Tracing


@dataclass(frozen=True, slots=True)
class Context:
    """The parts of an api process that endpoints use."""

    settings: Settings
    database: Database
    notifications: Notifications
    access: Access
    failures: Failures
    large_bodies: LargeBodies
    inspections: Inspections
    metrics: Metrics
    chart_renderer: ChartRenderer
    tracing: Tracing


async def context_of(request: Request) -> Context:
    """The context of the app that serves `request`."""
    context: Context = request.app.state.context
    return context


Using = Annotated[Context, Depends(context_of)]
