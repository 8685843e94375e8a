"""`/-/metrics`: what Prometheus asks for, for callers who may read the whole registry."""

from __future__ import annotations

import asyncio
from typing import Final

from starlette.types import Receive

from api.answer import Response
from api.metrics import CONTENT_TYPE, ServerMetrics
from api.problem import root_link
from api.request import Request
from api.rules import read_only_options
from domain.errors.http_errors import Forbidden

METRICS: Final = "metrics"


class MetricsRoutes:
    """The surface of `/-/metrics`."""

    def __init__(self, metrics: ServerMetrics) -> None:
        self._metrics = metrics

    async def answer(self, request: Request, receive: Receive) -> Response:
        """All figures in the text format. Raises: NotAllowed, Forbidden."""
        if (options := read_only_options(request)) is not None:
            return options
        if request.caller.role is None:
            raise Forbidden(caller=request.caller.name)
        text = await asyncio.to_thread(self._metrics.text)
        return Response(200, [CONTENT_TYPE, root_link(request.base)], text)
