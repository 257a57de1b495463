"""Logs of dispatcher, workers and children: one line an event on stderr, key=value, tracebacks below their line."""

import sys

import structlog
from structlog.typing import EventDict, WrappedLogger


def configure(**process: str) -> None:
    """Set up logging for this process; `process` (role, slot, …) is on each of its lines."""
    structlog.contextvars.bind_contextvars(**process)
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            _line,
        ],
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        cache_logger_on_first_use=True,
    )


_logfmt = structlog.processors.LogfmtRenderer(key_order=["timestamp", "level", "role", "event"], drop_missing=True)


def _line(logger: WrappedLogger, name: str, event: EventDict) -> str:
    traceback = event.pop("exception", None)
    line = _logfmt(logger, name, event)
    return f"{line}\n{traceback}" if traceback else line
