"""Tracing as the processes use it: a span around what they do, or nothing where no collector is configured."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from datetime import datetime
from typing import TYPE_CHECKING, Protocol

import structlog
from structlog.typing import FilteringBoundLogger

from warpfold.app.config import Settings
from warpfold.kernels.machine.extras import install

if TYPE_CHECKING:  # a worker's parent stays small
    from fastapi import FastAPI

log: FilteringBoundLogger = structlog.get_logger()

Attribute = str | int | float | bool


class Span(Protocol):
    """A span under way. `traceparent` (W3C Trace Context) makes others its children, also in another process; None
    where nothing is traced."""

    @property
    def traceparent(self) -> str | None: ...

    def note(self, **attributes: Attribute) -> None:
        """Add what became known on the way."""
        ...


class Tracing(Protocol):
    """Spans of one process. Their names are words of the domain; attributes are named `warpfold.<name>`."""

    def watch(self, app: "FastAPI") -> None:
        """Make a span of each request, which goes on the trace that its `traceparent` names."""
        ...

    def span(self, name: str, *, parent: str | None = None, **attributes: Attribute) -> AbstractContextManager[Span]:
        """Open a span around a block, below `parent` or else below the span that is under way here. An error ends
        it as failed."""
        ...

    def past(
        self, name: str, start: datetime, end: datetime, *, parent: str | None, **attributes: Attribute
    ) -> str | None:
        """Record a span of something that is over; returns its `traceparent`. Without a parent nothing is recorded: a
        job that was accepted before tracing was on has no parent."""
        ...

    def close(self) -> None:
        """Send the remaining spans, for a second at most."""
        ...


class _NoSpan:
    traceparent: str | None = None

    def note(self, **attributes: Attribute) -> None:
        pass


class NoTracing:
    """Traces nothing: no collector is configured."""

    def watch(self, app: "FastAPI") -> None:
        pass

    @contextmanager
    def span(self, name: str, *, parent: str | None = None, **attributes: Attribute) -> Iterator[Span]:
        yield _NoSpan()

    def past(
        self, name: str, start: datetime, end: datetime, *, parent: str | None, **attributes: Attribute
    ) -> str | None:
        return None

    def close(self) -> None:
        pass


def start_tracing(settings: Settings, role: str, **process: str) -> Tracing:
    """The tracing of the process that plays `role` (api, dispatcher, worker), described by `process`. Without the
    packages of OpenTelemetry it logs a warning and traces nothing."""
    if not settings.otlp_endpoint:
        return NoTracing()
    try:
        from warpfold.app.tracing.otlp import OtlpTracing
    except ImportError as error:
        log.warning(f"no traces: {install('tracing')}", missing=error.name)
        return NoTracing()
    named = {f"warpfold.{name}": value for name, value in process.items()}
    return OtlpTracing(settings.otlp_endpoint, {"service.name": f"warpfold-{role}", **named})
