"""Log lines: one per request at debug level, and one with a traceback for each server failure."""

from __future__ import annotations

import logging
import time
from collections.abc import MutableMapping
from typing import Any, Final

import structlog

from annals.api.http.request import Request

_STANDARD_LOGGER: Final = logging.getLogger("annals.http")


def _log_line(logger: Any, level: str, event: MutableMapping[str, Any]) -> tuple[tuple[str], dict[str, Any]]:
    """One line of words and values for the standard logger, which adds the traceback."""
    error = event.pop("exc_info", None)
    text = str(event.pop("event"))
    return (" ".join([text, *(f"{name}={value}" for name, value in event.items())]),), {"exc_info": error}


_LOG: Final = structlog.wrap_logger(
    _STANDARD_LOGGER, processors=[_log_line], wrapper_class=structlog.stdlib.BoundLogger
)


def start_timer() -> float:
    """The start time of a request, for `log_response`."""
    return time.perf_counter()


def log_response(request: Request, status: int, started_at: float) -> None:
    """Logs one response. Nearly free unless debug lines are enabled."""
    if _STANDARD_LOGGER.isEnabledFor(logging.DEBUG):
        milliseconds = round((time.perf_counter() - started_at) * 1000, 3)
        _LOG.debug("request", method=request.method, path=request.path, status=status, milliseconds=milliseconds)


def log_failure(request: Request, error: BaseException) -> None:
    """Logs a failure of the server. The client does not see its cause."""
    _LOG.error("request failed", method=request.method, path=request.path, exc_info=error)
