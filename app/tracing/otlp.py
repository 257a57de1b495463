"""Spans sent to an OpenTelemetry collector by OTLP over HTTP."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from threading import Thread
from typing import TYPE_CHECKING

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from warpfold.app.tracing.tracing import Attribute, Span

if TYPE_CHECKING:
    from fastapi import FastAPI

_UNTRACED = "healthz,readyz,metrics,static/,shared/"  # the last would tell secrets
_LAST_S = 1.0
_CONTEXT = TraceContextTextMapPropagator()


class OtlpTracing:
    """Spans of one process, sent in batches by a thread. A collector that is away costs spans, never a job.

    `endpoint` is the collector's base url, as in OTEL_EXPORTER_OTLP_ENDPOINT. What else can be told (headers,
    certificates, sampling) is read from OpenTelemetry's own variables.
    """

    def __init__(self, endpoint: str, process: Mapping[str, str]) -> None:
        # Not the global provider: a process may hold several, as tests do.
        self._provider = TracerProvider(resource=Resource.create({"service.namespace": "warpfold", **process}))
        exporter = OTLPSpanExporter(endpoint=f"{endpoint.rstrip('/')}/v1/traces")
        self._provider.add_span_processor(BatchSpanProcessor(exporter))
        self._tracer = self._provider.get_tracer("warpfold")

    def watch(self, app: "FastAPI") -> None:
        # here, because only the api has an app
        from opentelemetry.instrumentation.fastapi import FastAPIInstrumentor

        FastAPIInstrumentor.instrument_app(
            app, tracer_provider=self._provider, excluded_urls=_UNTRACED, exclude_spans=["receive", "send"]
        )

    @contextmanager
    def span(self, name: str, *, parent: str | None = None, **attributes: Attribute) -> Iterator[Span]:
        context = None if parent is None else _context_of(parent)
        with self._tracer.start_as_current_span(name, context, attributes=_named(attributes)) as span:
            yield _OtlpSpan(span)

    def past(
        self, name: str, start: datetime, end: datetime, *, parent: str | None, **attributes: Attribute
    ) -> str | None:
        if parent is None:
            return None
        span = self._tracer.start_span(
            name, _context_of(parent), attributes=_named(attributes), start_time=_nanoseconds(start)
        )
        span.end(_nanoseconds(max(start, end)))
        return _OtlpSpan(span).traceparent

    def close(self) -> None:
        # A collector that hangs must not hold up the end of the process.
        last = Thread(target=self._provider.shutdown, daemon=True)
        last.start()
        last.join(_LAST_S)


class _OtlpSpan:
    def __init__(self, span: trace.Span) -> None:
        self._span = span

    @property
    def traceparent(self) -> str | None:
        carrier: dict[str, str] = {}
        _CONTEXT.inject(carrier, trace.set_span_in_context(self._span))
        return carrier.get("traceparent")

    def note(self, **attributes: Attribute) -> None:
        self._span.set_attributes(_named(attributes))


def _context_of(traceparent: str) -> Context:
    return _CONTEXT.extract({"traceparent": traceparent}, Context())


def _named(attributes: Mapping[str, Attribute]) -> dict[str, Attribute]:
    return {f"warpfold.{name}": value for name, value in attributes.items()}


def _nanoseconds(moment: datetime) -> int:
    return int(moment.timestamp() * 1e6) * 1000
