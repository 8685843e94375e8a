"""`/-/metrics`: Prometheus metrics, for callers that may read the whole registry."""

from __future__ import annotations

import asyncio
from typing import Final

from starlette.types import Receive

from annals.api.feeds.rights import check_reads_everything
from annals.api.http.methods import read_only_options
from annals.api.http.problem_response import root_link
from annals.api.http.request import Request
from annals.api.http.response import Response
from annals.api.ops.metrics import CONTENT_TYPE, ServerMetrics
from annals.domain.access.roles import ANONYMOUS_READER
from annals.domain.errors.http_errors import Forbidden

METRICS: Final = "metrics"


class MetricsRoutes:
    """The surface of `/-/metrics`."""

    def __init__(self, metrics: ServerMetrics) -> None:
        self._metrics = metrics

    async def answer(self, request: Request, receive: Receive) -> Response:
        """All metrics in the Prometheus text format. Raises: MethodNotAllowed, Forbidden."""
        if (options := read_only_options(request)) is not None:
            return options
        check_reads_everything(request.caller)
        if request.caller == ANONYMOUS_READER:
            raise Forbidden(caller=request.caller.name)
        text = await asyncio.to_thread(self._metrics.text)
        return Response(200, [CONTENT_TYPE, root_link(request.base)], text)
