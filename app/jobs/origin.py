"""Where a job came from."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Origin:
    """The request that brought a job, for the logs of all who handle it, and its `traceparent`, for their spans.

    None of a job that was accepted without a request or a trace.
    """

    request_id: str | None = None
    traceparent: str | None = None


UNKNOWN = Origin()
