"""Log lines: one for each request at debug level, one with its traceback for each failure of ours."""

from __future__ import annotations

import logging
import time
from collections.abc import MutableMapping
from typing import Any, Final

import structlog

from api.http.request import Request

_STANDARD: Final = logging.getLogger("annals.http")


def _line(logger: Any, level: str, event: MutableMapping[str, Any]) -> tuple[tuple[str], dict[str, Any]]:
    """One line of words and values for the standard logger, which adds a traceback of its own."""
    error = event.pop("exc_info", None)
    text = str(event.pop("event"))
    return (" ".join([text, *(f"{name}={value}" for name, value in event.items())]),), {"exc_info": error}


_LOG: Final = structlog.wrap_logger(_STANDARD, processors=[_line], wrapper_class=structlog.stdlib.BoundLogger)


def start_timer() -> float:
    """A moment to hand to `answered`."""
    return time.perf_counter()


def log_response(request: Request, status: int, since: float) -> None:
    """Logs one answered request. Costs next to nothing unless debug lines are wanted."""
    if _STANDARD.isEnabledFor(logging.DEBUG):
        took = round((time.perf_counter() - since) * 1000, 3)
        _LOG.debug("request", method=request.method, path=request.path, status=status, milliseconds=took)


def log_failure(request: Request, error: BaseException) -> None:
    """Logs what went wrong on our side; the client learns nothing of it."""
    _LOG.error("request failed", method=request.method, path=request.path, exc_info=error)
