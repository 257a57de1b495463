"""Puts the dashboard into the api's app."""

from fastapi import FastAPI

from app.config import Settings
from app.dashboard.pages import admin, assets, compare, job, jobs, new_job, now, presets, results, sign_in
from app.dashboard.recent import Recent
from app.dashboard.shared import Shared
from app.dashboard.vega import VegaBundle


def install(app: FastAPI, settings: Settings) -> None:
    """Serve the dashboard at `/`. Reads and makes nothing yet."""
    app.state.dashboard = Shared(Recent(), VegaBundle(settings.data_dir / "cache"))
    # `/jobs/new` before `/jobs/{id}`.
    for one in (assets, sign_in, now, jobs, new_job, job, compare, results, presets, admin):
        app.include_router(one.router)
