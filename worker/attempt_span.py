"""Traces an attempt. Its spans are the run and, within the run, preparing, loading, kernels and the points of a
benchmark."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

from warpfold.app.jobs.attempt import Failure, Lease, Success
from warpfold.app.tracing.tracing import Span, Tracing
from warpfold.worker.lease_exchange import Ending, Hung
from warpfold.worker.messages import Measured, PointBegun


@contextmanager
def attempt_span(tracing: Tracing, lease: Lease, worker: str) -> Iterator["AttemptSpan"]:
    """The span of an attempt, from its claim until its end is stored. A job that came without a trace begins one."""
    parent = lease.traceparent
    with tracing.span("run", parent=parent, job=str(lease.job_id), attempt=lease.attempt, worker=worker) as span:
        yield AttemptSpan(tracing, span)


class AttemptSpan:
    """The span of one attempt. Its methods are called in the order in which things happen to the attempt."""

    def __init__(self, tracing: Tracing, span: Span) -> None:
        self._tracing = tracing
        self._span = span
        self._since = datetime.now(UTC)

    def begun(self) -> None:
        """Note that the attempt holds the device now. The time before was the wait for the device."""
        self._since = datetime.now(UTC)

    def heard(self, news: PointBegun | Measured) -> None:
        """Note that a point of a benchmark begins, or is done."""
        now = datetime.now(UTC)
        if isinstance(news, Measured):
            point = news.point
            parent = self._span.traceparent
            self._tracing.past(
                "point", self._since, now, parent=parent, strategy=point.strategy, op=point.op, n=point.n
            )
        self._since = now

    def ended(self, ending: Ending) -> None:
        """Note how the attempt ended."""
        _record_stages(self._tracing, self._span.traceparent, self._since, ending)
        self._span.note(**_how(ending))


def record_attempt(
    tracing: Tracing, lease: Lease, worker: str, ending: Ending, span: tuple[datetime, datetime]
) -> None:
    """Record an attempt of a group, once its end is stored; `span` is when the child began the job, and when its answer
    came."""
    began, ended = span
    attributes: dict[str, str | int] = {"job": str(lease.job_id), "attempt": lease.attempt, "worker": worker}
    run = tracing.past("run", began, ended, parent=lease.traceparent, **attributes, **_how(ending))
    if run is not None:
        _record_stages(tracing, run, began, ending)


def _record_stages(tracing: Tracing, parent: str | None, since: datetime, ending: Ending) -> None:
    """A reduction may load and add by turns. Its spans are the total time of loading and the total time of adding, one
    after the other."""
    match ending:
        case Success(_, [point]) if point.kind == "reduce":
            prepared = since + timedelta(milliseconds=point.prepare_ms or 0.0)
            loaded = prepared + timedelta(milliseconds=point.load_ms or 0.0)
            added = loaded + timedelta(milliseconds=point.kernel_ms or 0.0)
            if point.prepare_ms:
                tracing.past("prepare", since, prepared, parent=parent, strategy=point.strategy)
            tracing.past("load", prepared, loaded, parent=parent, bytes=point.bytes)
            tracing.past(
                "kernel", loaded, added, parent=parent, strategy=point.strategy, device=point.device, n=point.n
            )


def _how(ending: Ending) -> dict[str, str]:
    match ending:
        case Success():
            return {"ending": "success"}
        case Failure(reason, error):
            return {"ending": "failure", "reason": reason.value, "error": error}
        case Hung():
            return {"ending": "hung"}
        case _:
            return {"ending": getattr(ending, "name", "died").lower()}
