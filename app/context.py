"""What one api process works with, made once by `app.main.create_app`."""

from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends, Request

from app.auth.access import Access
from app.charts.press import Press
from app.config import Settings
from app.db import Database
from app.metrics.metrics import Metrics
from app.notifications import Notifications
from app.tracing.tracing import Tracing


@dataclass(frozen=True, slots=True)
class Context:
    """The parts that endpoints use."""

    settings: Settings
    database: Database
    notifications: Notifications
    access: Access
    metrics: Metrics
    press: Press
    tracing: Tracing


async def context_of(request: Request) -> Context:
    """The context of the app that serves `request`."""
    context: Context = request.app.state.context
    return context


Using = Annotated[Context, Depends(context_of)]
