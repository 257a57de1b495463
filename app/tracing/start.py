"""Tracing as the settings of a process want it."""

import structlog
from structlog.typing import FilteringBoundLogger

from warpfold.app.config import Settings
from warpfold.app.tracing.tracing import NoTracing, Tracing
from warpfold.kernels.extras import install

log: FilteringBoundLogger = structlog.get_logger()


def start_tracing(settings: Settings, role: str, **process: str) -> Tracing:
    """Traces of the process that plays `role` (api, dispatcher, worker), described by `process`. Without the packages
    of OpenTelemetry a warning, and none."""
    if not settings.otlp_endpoint:
        return NoTracing()
    try:
        from warpfold.app.tracing.otlp import OtlpTracing
    except ImportError as error:
        log.warning(f"no traces: {install('tracing')}", missing=error.name)
        return NoTracing()
    named = {f"warpfold.{name}": value for name, value in process.items()}
    return OtlpTracing(settings.otlp_endpoint, {"service.name": f"warpfold-{role}", **named})
