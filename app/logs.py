"""Logs of every process are JSON objects on stderr, one a line; on a terminal they are lines for people.

A call to a logger never raises: a job that was accepted stays accepted even if the line about it is lost.
"""

import json
import logging
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TextIO, cast

import structlog
from structlog.typing import EventDict, Processor, WrappedLogger

from warpfold.app.log_stream import LogStream, standard_error

_FIRST = ("timestamp", "level", "role", "event")
_OTHERS = "uvicorn"
"""The library whose information is logged; of the other libraries, only warnings are."""


def configure(**process: str) -> None:
    """Set up logging for this process. Each of its lines has the fields `process` (role, slot, …), whichever thread
    wrote it.

    Lines that libraries write by `logging` have the same form, with the id of the request or job that they are about.
    """
    stamped: Sequence[Processor] = (
        structlog.contextvars.merge_contextvars,
        _with_fields(process),
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.format_exc_info,
    )
    stream = standard_error()
    on_terminal = stream is not None and not stream.closed and stream.isatty()
    shown: Sequence[Processor] = (_line,) if on_terminal else (_ordered, structlog.processors.JSONRenderer())
    lines = LogStream(stream, lambda count: _plain(process, "lines of the log were dropped", dropped=count))
    structlog.configure(
        processors=[_SafeProcessors([*stamped, *shown], process)],
        logger_factory=structlog.WriteLoggerFactory(cast(TextIO, lines)),
        cache_logger_on_first_use=True,
    )
    handler = _Handler(lines, process)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=[structlog.stdlib.add_logger_name, *stamped],
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *shown],
        )
    )
    logging.basicConfig(handlers=[handler], level=logging.WARNING, force=True)
    logging.getLogger(_OTHERS).setLevel(logging.INFO)


def dropped_lines() -> int:
    """How many lines of this process could not be written since `configure`."""
    return sum(handler.stream.dropped for handler in logging.getLogger().handlers if isinstance(handler, _Handler))


class _Handler(logging.StreamHandler[LogStream]):
    """Writes the lines of libraries. Where a line cannot be made, another line says so; logging prints a traceback."""

    def __init__(self, lines: LogStream, process: dict[str, str]) -> None:
        super().__init__(lines)
        self._process = process

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 (logging's)
        where = f"{record.pathname}:{record.lineno}"
        self.stream.write(_plain(self._process, _UNREADABLE, logger=record.name, where=where) + "\n")


class _SafeProcessors:
    """Runs the processors of a line. For a line that cannot be made, another line says so."""

    def __init__(self, processors: Sequence[Processor], process: dict[str, str]) -> None:
        self._processors = processors
        self._process = process

    def __call__(self, logger: WrappedLogger, name: str, event: EventDict) -> str:
        message = event.get("event")
        result: object = event
        try:
            for processor in self._processors:
                result = processor(logger, name, result)  # type: ignore[arg-type]
            return str(result)
        except Exception as error:
            return _plain(
                self._process,
                _UNREADABLE,
                said=message[:200] if isinstance(message, str) else type(message).__name__,
                error=type(error).__name__,
            )


_UNREADABLE = "a line of the log cannot be worded"


def _plain(process: dict[str, str], event: str, **fields: object) -> str:
    """A line about the log itself. Making it cannot fail."""
    now = datetime.now(UTC).isoformat().replace("+00:00", "Z")
    return json.dumps({"timestamp": now, "level": "warning", **process, "event": event, **fields})


def _with_fields(process: dict[str, str]) -> Processor:
    def add(logger: WrappedLogger, name: str, event: EventDict) -> EventDict:
        return {**process, **event}

    return add


def _ordered(logger: WrappedLogger, name: str, event: EventDict) -> EventDict:
    return {key: event[key] for key in (*_FIRST, *event) if key in event}


_logfmt = structlog.processors.LogfmtRenderer(key_order=_FIRST, drop_missing=True)


def _line(logger: WrappedLogger, name: str, event: EventDict) -> str:
    traceback = event.pop("exception", None)
    line = _logfmt(logger, name, event)
    return f"{line}\n{traceback}" if traceback else line
