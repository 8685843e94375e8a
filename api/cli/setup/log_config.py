"""The log lines of a process: their level, their form, and that they go to stderr.

All code logs with the standard library, and gives values that programs read as `extra`. structlog formats the lines;
it is imported with the first one, because most verbs write none.
"""

from __future__ import annotations

import logging
import os
import sys
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from structlog.typing import EventDict, Processor, WrappedLogger

    from annals.api.settings.settings import LogFormat, Settings

#: The loggers that `ANNALS_LOG_LEVEL` governs. Those of libraries stay at `warning`: at `debug`, HTTP clients log the
#: headers that they send, with credentials.
_OWN_LOGGERS: Final = ("annals", "uvicorn")
#: The members with which each line begins.
_FIRST_MEMBERS: Final = ("time", "level", "logger", "event")
#: Members that have the message again: uvicorn's with colors, and that of another handler.
_REPEATED_MEMBERS: Final = ("color_message", "message")
_LOG: Final = logging.getLogger("annals")


def configure_logs(settings: Settings) -> None:
    """Sends all log lines of this process to stderr, in the form and from the level on that the settings name."""
    root = logging.getLogger()
    for handler in [handler for handler in root.handlers if isinstance(handler, _StderrHandler)]:
        root.removeHandler(handler)
    root.addHandler(_StderrHandler(settings.log_format))
    for name in _OWN_LOGGERS:
        logging.getLogger(name).setLevel(settings.log_level.upper())
    if settings.log_format == "json":
        logging.captureWarnings(True)
        sys.excepthook = lambda kind, error, _: _log_uncaught(error)
        threading.excepthook = lambda uncaught: _log_uncaught(uncaught.exc_value)


def writes_json() -> bool:
    """Whether the log lines of this process are JSON."""
    return any(getattr(handler, "log_format", None) == "json" for handler in logging.getLogger().handlers)


class _StderrHandler(logging.StreamHandler):  # type: ignore[type-arg]  # its type is generic for type checkers only
    """Writes lines to stderr. It builds the formatter for the first line."""

    def __init__(self, log_format: LogFormat) -> None:
        super().__init__(sys.stderr)
        self.log_format = log_format

    def format(self, record: logging.LogRecord) -> str:
        if self.formatter is None:
            self.setFormatter(_FORMATTERS[self.log_format]())
        return super().format(record)


def _json_formatter() -> logging.Formatter:
    from structlog import processors

    return _formatter(processors.format_exc_info, processors.JSONRenderer(ensure_ascii=False))


def _console_formatter() -> logging.Formatter:
    from structlog.dev import ConsoleRenderer, plain_traceback

    has_colors = sys.stderr.isatty() and not os.environ.get("NO_COLOR")
    # A plain traceback has no values of local variables, which may be secrets.
    renderer = ConsoleRenderer(
        colors=has_colors, exception_formatter=plain_traceback, sort_keys=False, timestamp_key="time"
    )
    return _formatter(_escape_control_characters, renderer)


_FORMATTERS: Final[dict[LogFormat, Callable[[], logging.Formatter]]] = {
    "console": _console_formatter,
    "json": _json_formatter,
}


def _formatter(*last_processors: Processor) -> logging.Formatter:
    """structlog's formatter for lines of the standard library."""
    from structlog import processors, stdlib

    first_processors: list[Processor] = [
        stdlib.add_log_level,
        stdlib.add_logger_name,
        processors.TimeStamper(fmt="iso", utc=True, key="time"),
        stdlib.ExtraAdder(),
        _order_members,
    ]
    remove_metadata = stdlib.ProcessorFormatter.remove_processors_meta
    return stdlib.ProcessorFormatter(processors=[remove_metadata, *last_processors], foreign_pre_chain=first_processors)


def _order_members(_: WrappedLogger, __: str, members: EventDict) -> EventDict:
    own_members = {name: value for name, value in members.items() if name not in _REPEATED_MEMBERS}
    return {**{name: members[name] for name in _FIRST_MEMBERS}, **own_members}


def _escape_control_characters(_: WrappedLogger, __: str, members: EventDict) -> EventDict:
    """A text cannot end its line or control a terminal. The renderer quotes values with white space."""
    return {name: _escaped(value) if isinstance(value, str) else value for name, value in members.items()}


def _escaped(text: str) -> str:
    text = text.strip()  # some libraries end a message with a new line
    return text if text.isprintable() else text.encode("unicode_escape").decode()


def _log_uncaught(error: BaseException | None) -> None:
    _LOG.critical("uncaught error", exc_info=error)
