"""Tracing as it starts. What arrives at a collector is tested with real processes in tests/integration."""

import sys
from datetime import UTC, datetime

import pytest

from warpfold.app.config import Settings
from warpfold.app.tracing.otlp import OtlpTracing
from warpfold.app.tracing.tracing import NoTracing, start_tracing

NOWHERE = Settings(otlp_endpoint="http://127.0.0.1:9")


def test_without_an_endpoint_nothing_is_traced_and_nothing_loaded() -> None:
    tracing = start_tracing(Settings(otlp_endpoint=""), "api")
    assert isinstance(tracing, NoTracing)
    with tracing.span("submit", kind="reduce") as span:
        span.note(job="j")
        assert span.traceparent is None


def test_without_the_packages_it_says_how_to_get_them(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delitem(sys.modules, "warpfold.app.tracing.otlp")
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk.trace", None)
    assert isinstance(start_tracing(NOWHERE, "api"), NoTracing)
    assert "pip install '.[tracing]'" in capsys.readouterr().out


def test_a_span_within_another_is_its_child_and_a_parent_can_be_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "60000")
    tracing = start_tracing(NOWHERE, "worker", slot="cpu")
    assert isinstance(tracing, OtlpTracing)
    traceparent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
    with tracing.span("run", parent=traceparent) as run, tracing.span("inner") as inner:
        assert run.traceparent is not None
        assert inner.traceparent is not None
        assert run.traceparent.split("-")[1] == inner.traceparent.split("-")[1] == traceparent.split("-")[1]
        assert len({traceparent, run.traceparent, inner.traceparent}) == 3
    now = datetime.now(UTC)
    tracing.past("queue wait", now, now, parent=None)  # a job without a trace: nothing
    tracing.close()
