"""A log line for each request, and one with a traceback for each failure of the server."""

from __future__ import annotations

import logging
import time
from contextvars import ContextVar
from typing import Final

from annals.api.http.access_log.line_rate import AccessLogMode, LineRate
from annals.api.http.access_log.route_templates import RouteTemplates
from annals.api.http.request import Request
from annals.api.http.response import CORRELATION_HEADER, Response
from annals.domain.access.roles import Caller

#: The caller of the current request; None before it is authenticated. The task of each request has its own.
CURRENT_CALLER: Final[ContextVar[Caller | None]] = ContextVar("annals_caller", default=None)

_LOG: Final = logging.getLogger("annals.access")


class AccessLog:
    """Writes the lines of all requests of one server. routes: the templates of its routes."""

    def __init__(self, mode: AccessLogMode, routes: RouteTemplates) -> None:
        self._is_off = mode == "off"
        self._routes = routes
        self._rate = LineRate(mode, _report_skipped)

    def add(self, request: Request, response: Response, started_at: float) -> None:
        """Logs one response, unless there are too many. Errors of the server are always logged.

        started_at: `time.perf_counter()` at the start of the request. Cost without a line: 0.3 microseconds.
        """
        if self._is_off or not _LOG.isEnabledFor(logging.INFO):
            return
        if self._rate.admits() or response.status >= 500:
            self._write(request, response, started_at)

    def add_failure(self, request: Request, error: BaseException, outage: str | None = None) -> None:
        """Logs a failure of the server. The client does not see its cause.

        outage: why the store cannot be used, if that is the cause. Many requests fail then, each with one line.
        """
        if outage is not None:
            _LOG.error("request failed: %s", outage, extra=self._request_fields(request))
        else:
            _LOG.error("request failed", exc_info=error, extra=self._request_fields(request))

    def close(self) -> None:
        """Reports the requests that were not logged and not reported yet."""
        self._rate.close()

    def _write(self, request: Request, response: Response, started_at: float) -> None:
        fields = {
            **self._request_fields(request),
            "status": response.status,
            "duration_ms": round((time.perf_counter() - started_at) * 1000, 3),
        }
        if (caller := CURRENT_CALLER.get()) is not None:
            fields["caller"] = caller.name
        if not request.is_read and (id := _correlation_id(response)) is not None:
            fields["xregcorrelationid"] = id
        _LOG.info("request", extra=fields)

    def _request_fields(self, request: Request) -> dict[str, object]:
        route, path = self._routes.describe(request)
        return {"method": request.method, "route": route, "path": path}


def _correlation_id(response: Response) -> str | None:
    return next((value.decode() for name, value in response.headers if name == CORRELATION_HEADER), None)


def _report_skipped(requests: int, seconds: float) -> None:
    fields = {"requests": requests, "seconds": round(seconds, 1), "per_second": round(requests / max(seconds, 0.001))}
    _LOG.info("requests not logged, because too many arrived", extra=fields)
