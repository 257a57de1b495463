"""Logs of every process: one JSON object a line on stderr; where that is a terminal, lines for people."""

import logging
import sys
from collections.abc import Sequence

import structlog
from structlog.typing import EventDict, Processor, WrappedLogger

_FIRST = ("timestamp", "level", "role", "event")
_OTHERS = "uvicorn"
"""The library whose information is worth a line; of the others we want to hear warnings."""


def configure(**process: str) -> None:
    """Set up logging for this process; `process` (role, slot, …) is on each of its lines, whichever thread wrote it.

    What libraries log by `logging` comes in the same shape, with the ids of the request or job it was logged for.
    """
    stamped: Sequence[Processor] = (
        structlog.contextvars.merge_contextvars,
        _told_of(process),
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.format_exc_info,
    )
    shown: Sequence[Processor] = (_line,) if sys.stderr.isatty() else (_ordered, structlog.processors.JSONRenderer())
    structlog.configure(
        processors=[*stamped, *shown],
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        cache_logger_on_first_use=True,
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=[structlog.stdlib.add_logger_name, *stamped],
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *shown],
        )
    )
    logging.basicConfig(handlers=[handler], level=logging.WARNING, force=True)
    logging.getLogger(_OTHERS).setLevel(logging.INFO)


def _told_of(process: dict[str, str]) -> Processor:
    def tell(logger: WrappedLogger, name: str, event: EventDict) -> EventDict:
        return {**process, **event}

    return tell


def _ordered(logger: WrappedLogger, name: str, event: EventDict) -> EventDict:
    return {key: event[key] for key in (*_FIRST, *event) if key in event}


_logfmt = structlog.processors.LogfmtRenderer(key_order=_FIRST, drop_missing=True)


def _line(logger: WrappedLogger, name: str, event: EventDict) -> str:
    traceback = event.pop("exception", None)
    line = _logfmt(logger, name, event)
    return f"{line}\n{traceback}" if traceback else line
